"""The public functions that are one row of the table each: exp, add, maximum …

In: nothing. Out: a function for every row with an example (`ops/maps.py`). `maps.pyi`, which
`python -m scripts.stubs` writes, tells type checkers and editors of them.
"""

from .rows import functions_of

_FUNCTIONS = functions_of(__name__)
__all__ = sorted(_FUNCTIONS)
globals().update(_FUNCTIONS)
