"""What this project promises: measurements by topic, found by name."""
