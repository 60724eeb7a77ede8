"""Writing random programs: from a seed, a `Program` whose results mean something when they are compared.

Each step is computed by NumPy while the program is written, in its own dtype and in float64. A step that
rounding changes by a good part of what tests allow, or that decides by a hair, is not taken.
"""

from tests.properties.writing.program import write_program

__all__ = ["write_program"]
