"""The one ledger: what papers claim and what this project promises, measured."""
