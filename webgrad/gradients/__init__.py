"""Gradients: which tensors require them, how they go back through histories, and functions with custom
rules.
"""
