"""Choices: the ways to make a kernel, where a lowering has more than one.

A choice is pairs of a name and a number, such as (("rows", 8), ("unroll", 2)); each lowering defines
what they mean. `choices(graph, group, profile)` of a lowering gives those it offers, the first being the
default for the profile; all of them compute the same.
"""

from __future__ import annotations

Choice = tuple[tuple[str, int], ...]
