"""All programs of the suite, by name."""

from __future__ import annotations

from tests.programs import generative, images, texts, whole, worlds
from tests.programs.program import Program

__all__ = ["PROGRAMS"]

PROGRAMS: dict[str, Program] = {
    each.name: each for part in (images, texts, generative, worlds, whole) for each in part.programs()
}
