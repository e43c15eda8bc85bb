"""Make every picture of the documentation: `python -m docs.figures`."""

from importlib import import_module
from pkgutil import iter_modules

import docs.figures

for module in iter_modules(docs.figures.__path__):
    if module.name != "__main__":
        import_module(f"docs.figures.{module.name}").main()
