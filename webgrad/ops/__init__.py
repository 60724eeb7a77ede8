"""Ops: their rows, their shape rules, functions that make nodes. Public functions are in functions/."""
