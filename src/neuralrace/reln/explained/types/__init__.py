"""Gates that slide, and neurons that come in types."""
