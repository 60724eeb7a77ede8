"""The libraries that are measured, each run by a script of its own in its own environment."""
