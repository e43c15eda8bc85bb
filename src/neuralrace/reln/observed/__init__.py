"""What ReLU neurons do in training: activity, shares of prototypes, copied and sliding gates."""
