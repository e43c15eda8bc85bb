"""Figures of Saxe's talk *Models of representation learning dynamics*, its first two parts."""
