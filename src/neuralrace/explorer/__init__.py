"""The explorer: a page in the browser or a notebook that shows a race while its parameters move."""

from neuralrace.explorer.serving import ask, schema, serve
from neuralrace.explorer.widget import explore

__all__ = ["ask", "explore", "schema", "serve"]
