"""Choices: the options of a lowering that change how quick a kernel is, never what it computes.

A lowering with options has `choices(graph, group, profile)`, the first being the default for that profile;
the autotuner measures them, and the lowering takes the one that won.
"""

from __future__ import annotations

__all__ = ["Choice"]

Choice = tuple[tuple[str, int], ...]
