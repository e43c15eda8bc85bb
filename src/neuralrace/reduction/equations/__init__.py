"""Write the equations: merged variables, closed forms, symbols."""
