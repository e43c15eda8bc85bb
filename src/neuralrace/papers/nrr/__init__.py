"""Figures of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""
