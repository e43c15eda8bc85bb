"""`python -m papers list`, `reproduce NAME`, `tour NAME` and `claims`."""

from neuralrace.cli import main
from papers.commands import commands

if __name__ == "__main__":
    main(commands, "python -m papers")
