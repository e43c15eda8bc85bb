"""`python -m neuralrace` is the command `neuralrace`."""

from neuralrace.cli import main

if __name__ == "__main__":
    main()
