"""Every claim the project makes, measured: `python -m verification` writes docs/verified.md."""
