"""The explorer: a page in the browser or a notebook that shows a race while its parameters move."""

from neuralrace.explorer.serving import schema, serve
from neuralrace.explorer.widget import explore

__all__ = ["explore", "schema", "serve"]
