"""The repository's own tools, run as `python -m scripts.name` from its root; the standard library only."""
