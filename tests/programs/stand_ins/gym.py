"""gym is what became gymnasium."""

from gymnasium import make, spaces  # type: ignore[import-not-found]

__all__ = ["make", "spaces"]
