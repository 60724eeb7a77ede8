"""Pipelines: the parts of a published model put together, from a prompt to pictures."""
