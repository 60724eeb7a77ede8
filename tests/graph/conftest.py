"""The graphs of these tests have leaves without data: nothing may compute them."""

from __future__ import annotations

from tests.graph.helpers import unlimited_backlog

__all__ = ["unlimited_backlog"]
