"""Functions of complex numbers, as formulas over pairs of floats."""
