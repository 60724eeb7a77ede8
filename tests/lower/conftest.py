"""Leaves of these tests have no data: nothing may compute them. `profile` is each kind of device."""

from __future__ import annotations

from tests.graph.helpers import unlimited_backlog
from tests.schedule.graphs import profile

__all__ = ["profile", "unlimited_backlog"]
