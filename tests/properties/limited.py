"""Devices with limits of a test's choosing, and a look at every launch: none may go beyond them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.properties.helpers import gpu
from webgrad.device_profile import ProfileKind
from webgrad.observing import Observer, observe
from webgrad.runtime.webgpu import Device

__all__ = ["BINDING", "GROUPS", "limited"]

BINDING = 128 * 2**20  # bytes: what every device can bind at once
GROUPS = 65_535  # workgroups in a row of the grid, on every device


class Limits(Observer):
    """Sees that no launch goes beyond a device's limits: the adapter would take more than the narrow ones."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.launches = 0

    def flushed(self, flush: Any) -> None:
        profile = self.device.profile
        for launch in flush.launches:
            self.launches += 1
            assert max(launch.row.grid) <= profile.max_workgroups
            assert max(each.nbytes for each in launch.bound) <= profile.max_binding_bytes


@contextmanager
def limited(kind: ProfileKind = "software", binding: int = BINDING, groups: int = GROUPS) -> Iterator[Device]:
    """A device of the test's own, so that its memory goes with it; kernels as for one kind of device."""
    shared = gpu()
    own = Device(shared.info, shared.settings)
    lanes = shared.profile.subgroup_size if kind == "software" else 0
    own.__dict__["profile"] = replace(
        shared.profile, kind=kind, subgroup_size=lanes, max_binding_bytes=binding, max_workgroups=groups
    )
    limits = Limits(own)
    with observe(limits):
        yield own
        own.synchronize()
    assert limits.launches
