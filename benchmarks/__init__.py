"""Ratios of running times, each measured side by side in one run."""
