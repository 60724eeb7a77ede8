"""Bind groups and their layouts, made once and kept until one of their buffers goes.

A group's key is its layout and the ranges it binds. Layouts are explicit and shared by every pipeline with
the same list of accesses, so one group serves many pipelines. Each group lives in an arena; dropping a
buffer drops its groups, since a live group would pin the buffer's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .arena import Arena
from .layer import DeviceLayer, Handle
from .pool import Pool
from .stats import Counters

Range = tuple[int, int, int]  # physical buffer, offset, bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """A bind group layout and the pipeline layout over it, numbered so that it can stand in a key."""

    number: int
    group: Handle
    pipeline: Handle


@dataclass(frozen=True, slots=True)
class BindGroup:
    """A bind group's handle, and the same as its encoder wants it."""

    handle: Handle
    argument: Any
    buffers: tuple[int, ...]


class BindGroups:
    """The bind groups of one open device, at most `limit` of them."""

    def __init__(self, native: DeviceLayer, pool: Pool, counters: Counters, limit: int = 32768) -> None:
        self.native = native
        self.limit = limit
        self.arena: Arena[BindGroup] = Arena("bind group")
        self._pool = pool
        self._counters = counters
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._by_key: dict[tuple[Any, ...], int] = {}
        self._of_buffer: dict[int, set[tuple[Any, ...]]] = {}
        self._new: list[tuple[Any, ...]] = []  # keys of the groups made since `creating` began

    def __len__(self) -> int:
        return len(self.arena)

    def layout(self, accesses: tuple[str, ...]) -> Layout:
        """The layout of a kernel whose storage bindings have these accesses."""
        found = self._layouts.get(accesses)
        if found is None:
            group, pipeline = self.native.create_layouts(accesses)
            found = self._layouts[accesses] = Layout(len(self._layouts), group, pipeline)
        return found

    def whole(self, layout: Layout, buffers: tuple[int, ...]) -> BindGroup:
        """The group that binds whole physical buffers."""
        key = (layout.number, *buffers)
        found = self._find(key)
        if found is None:
            physical = map(self._pool.buffers.get, buffers)
            found = self._create(layout, key, buffers, [(each.handle, 0, each.size) for each in physical])
        return found

    def ranges(self, layout: Layout, ranges: tuple[Range, ...]) -> BindGroup:
        """The group that binds parts of physical buffers."""
        key = (layout.number, *ranges)
        found = self._find(key)
        if found is None:
            get = self._pool.buffers.get
            parts = [(get(buffer).handle, offset, size) for buffer, offset, size in ranges]
            found = self._create(layout, key, tuple(buffer for buffer, _, _ in ranges), parts)
        return found

    def _find(self, key: tuple[Any, ...]) -> BindGroup | None:
        handle = self._by_key.get(key)
        if handle is None:
            return None
        self._counters.bind_groups_reused += 1
        return self.arena.get(handle)

    @contextmanager
    def creating(self) -> Iterator[None]:
        """One error scope around the making of many groups; after an error none of them is kept."""
        self._new.clear()
        self.native.push_scope()
        try:
            yield
        finally:
            error = self.native.pop_scope()
            if error:
                for key in self._new:
                    self._drop(key)
                self.native.fail(error, "making bind groups")

    def drop_buffer(self, buffer: int) -> None:
        """Let go of every group that binds this physical buffer."""
        for key in tuple(self._of_buffer.get(buffer, ())):
            self._drop(key)

    def _drop(self, key: tuple[Any, ...]) -> None:
        group = self.arena.remove(self._by_key.pop(key))
        for buffer in group.buffers:
            keys = self._of_buffer.get(buffer)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._of_buffer[buffer]
        self.native.release_bind_group(group.handle)

    def clear(self) -> None:
        """Let every group go."""
        for handle in self._by_key.values():
            self.native.release_bind_group(self.arena.remove(handle).handle)
        self._by_key.clear()
        self._of_buffer.clear()

    def close(self) -> None:
        """Let the layouts go too."""
        self.clear()
        for layout in self._layouts.values():
            self.native.release_layouts(layout.group, layout.pipeline)

    def _create(
        self,
        layout: Layout,
        key: tuple[Any, ...],
        buffers: tuple[int, ...],
        ranges: list[tuple[Handle, int, int]],
    ) -> BindGroup:
        handle = self.native.create_bind_group(layout.group, ranges)
        group = BindGroup(handle, self.native.argument(handle), buffers)
        self._by_key[key] = self.arena.insert(group)
        for buffer in buffers:
            self._of_buffer.setdefault(buffer, set()).add(key)
        self._new.append(key)
        self._counters.bind_groups_created += 1
        return group
