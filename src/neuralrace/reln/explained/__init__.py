"""What explains ReLU neurons: gates that they keep, align to, or have in common."""
