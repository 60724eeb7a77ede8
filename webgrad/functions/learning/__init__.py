"""Functions of machine learning: activations, normalisation, losses, attention, quantised weights."""
