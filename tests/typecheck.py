"""The runtime type checker of the tests: beartype, in which an int is a float too (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
