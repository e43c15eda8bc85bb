"""Find the blocks: shared bases, independent parts, and what counts as exact."""
