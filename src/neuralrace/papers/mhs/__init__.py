"""Figures of Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)."""
