"""Start and solve: initial values, solvers, and the way back to full-size weights."""
