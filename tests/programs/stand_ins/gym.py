"""gym is what became gymnasium."""

from gymnasium import make, spaces

__all__ = ["make", "spaces"]
