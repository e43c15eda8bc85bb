"""`python -m papers list`, `reproduce NAME` and `tour NAME`."""

from neuralrace.cli import main
from papers.commands import commands

if __name__ == "__main__":
    main(commands, "python -m papers")
