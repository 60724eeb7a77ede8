"""Nothing is computed behind the back of these tests."""

from __future__ import annotations

from tests.graph.helpers import unlimited_backlog

__all__ = ["unlimited_backlog"]
