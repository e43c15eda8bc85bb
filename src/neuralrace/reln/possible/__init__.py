"""What ReLU neurons can do: the activity patterns that one neuron can have on given inputs."""
