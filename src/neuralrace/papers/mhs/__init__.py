"""Make Haste Slowly (Jarvis, Klein, Rosman & Saxe 2025)."""
