"""A GPU: an adapter opened, with its queue, its profile and its pipelines.

Comes in: an adapter. Goes out: buffers, recorded commands, bytes. A Device outlives the loss of the native
device under it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..config import Settings
from ..config import settings as current_settings
from ..device_profile import GPU_PROFILES, DeviceProfile, ProfileKind
from ..errors import DTypeError, LaunchError
from ..observing import opened
from ..wgsl import Program
from . import adapters
from .adapters import AdapterInfo
from .buffers import Buffer
from .checks import Limits
from .context import Context, Event
from .device import AnyDevice, register
from .host import memory_bytes
from .layer import Answers, DeviceLayer
from .pipelines import Pairs, Pipeline
from .queue import Queue
from .stats import Counters, Stats
from .transfer import Bytes
from .trial import is_tried, trial_of

_PROFILES: dict[str, ProfileKind] = {
    "software": "software",
    "integrated": "integrated",
    "other": "integrated",
}


class Device(AnyDevice):
    """A GPU: virtual buffers, recorded commands, pipelines.

    `settings` and `features` narrow what the adapter offers; a Device made directly is its user's own, one
    from `open_device` is shared.

    >>> device = wg.open_device("webgpu")
    >>> np.frombuffer(device.read(device.upload(np.arange(3, dtype=np.int32))), np.int32).tolist()
    [0, 1, 2]
    """

    is_gpu = True

    def __init__(
        self, info: AdapterInfo, settings: Settings | None = None, why: str = "the program made it itself"
    ) -> None:
        self.info = info
        self.name = info.device
        self.settings = settings or current_settings()
        self.features = info.features
        self.counters = Counters()
        self._pipelines: dict[tuple[object, ...], Pipeline] = {}  # by program, checks and variants
        limits = info.limits
        budget = self._budget()
        self.budget = budget
        self.queue = Queue(
            self.name,
            Limits(
                max_commands=self.settings.queue,
                max_pending_bytes=budget,
                max_workgroups=limits["max-compute-workgroups-per-dimension"],
                max_buffer=limits["max-buffer-size"] & ~0xFFFFF,
                max_binding=limits["max-storage-buffer-binding-size"] & ~3,
                min_offset=limits["min-storage-buffer-offset-alignment"],
            ),
            self.counters,
            self._open_context,
        )
        self._announce(why)

    def _announce(self, why: str) -> None:
        """Be known to the process, and to those who watch."""
        register(self)
        opened(self, why)

    def _budget(self) -> int:
        memory = memory_bytes() or 8 << 30
        if self.settings.memory is not None:
            return self.settings.memory.of(memory)
        return min(memory // 2, 8 * self.info.limits["max-buffer-size"])

    def _open_context(self) -> Context:
        return Context(
            self._open_layer,
            self.features,
            self.counters,
            budget=self.budget,
            in_flight=self.settings.in_flight,
            encoder=self.settings.encoder,
            largest=lambda: self.queue.largest(),
        )

    def _open_layer(self, done: Answers) -> DeviceLayer:
        if self.info.backend == "browser":
            layer: DeviceLayer = adapters.browser().open_browser(done)
            return layer
        from .native import open_native  # here: it loads wgpu-native, which browsers have not

        quick = self.settings.encoder == "fast"
        return open_native(adapters.raw_adapter(self.info.index), self.features, done, quick=quick)

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.info.name}>"

    def learn(self) -> str:
        """Find out by a trial what the adapter does not tell; what is wrong with its numbers, or ""."""
        if self.settings.profile is not None or not is_tried(self.info):
            return ""
        trial = trial_of(self)
        self.reset_stats()
        if trial.lanes:
            self.info = replace(self.info, subgroup_sizes=(trial.lanes, trial.lanes))
            adapters.note_subgroups(self.info)
        return trial.problem

    @functools.cached_property
    def profile(self) -> DeviceProfile:
        """What kernel choosers may know of this device."""
        limits = self.info.limits
        kind, lanes = self._kind_and_lanes()
        return DeviceProfile(
            kind=kind,
            features=self.features,
            subgroup_size=lanes,
            max_invocations=limits["max-compute-invocations-per-workgroup"],
            max_workgroup_storage=limits["max-compute-workgroup-storage-size"],
            max_workgroups=limits["max-compute-workgroups-per-dimension"],
            max_storage_buffers=limits["max-storage-buffers-per-shader-stage"],
            max_binding_bytes=limits["max-storage-buffer-binding-size"],
        )

    def _kind_and_lanes(self) -> tuple[ProfileKind, int]:
        """The device's own, or another GPU's, whose subgroups a software adapter may not have."""
        lanes = self._subgroup_size()
        if self.settings.profile is None:
            return _PROFILES.get(self.info.type, "discrete"), lanes
        kind, wanted = GPU_PROFILES[self.settings.profile]
        there = "subgroups" in self.features and (not self.info.software or wanted == lanes)
        return kind, wanted if there else 0

    def _subgroup_size(self) -> int:
        """The size of subgroups, 0 where kernels may differ: told by the adapter, or by Mesa's name."""
        if "subgroups" not in self.features:
            return 0
        smallest, largest = self.info.subgroup_sizes
        if smallest == largest:
            return smallest
        lanes = re.search(r"llvmpipe \(.*?(\d+) bits\)", self.info.name)  # its vectors hold 32-bit lanes
        return int(lanes[1]) // 32 if lanes else 0

    # Buffers

    def allocate(self, nbytes: int, label: str = "") -> Buffer:
        """A buffer of so many bytes, with no contents yet."""
        return self.queue.allocate(nbytes, label)

    def upload(self, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """A buffer with a copy of host memory. `keep` holds on to that, in case the device is lost."""
        return self.queue.upload(data, label, keep=keep)

    def read(self, buffer: Buffer, *, keep: bool = False) -> Bytes:
        """A buffer's bytes, once all that was recorded has run. `keep` leaves them on the host, read-only."""
        return self.queue.read(buffer, keep=keep)

    async def read_async(self, buffer: Buffer) -> Bytes:
        """The same without blocking the event loop."""
        return await self.queue.read_async(buffer)

    # Commands

    def pipeline(
        self,
        program: Program,
        *,
        checked: bool | None = None,
        in_place: Sequence[tuple[Pairs, Program | None]] = (),
    ) -> Pipeline:
        """The pipeline of a program. Bounds checks are left out for our own kernels, unless checks are on.

        `in_place` are pairs of bindings (input, output), each with the variant to run where the inputs are
        donated: it binds the outputs only, and None means that there is nothing left to do.
        """
        if not isinstance(program, Program):
            raise LaunchError(
                f"a {type(program).__name__} is not a program: make one with webgrad.wgsl.program_from_source"
            )
        careful = self.settings.checks if checked is None else bool(checked) or self.settings.checks
        key = (program, careful, tuple(in_place))
        found = self._pipelines.get(key)
        if found is None:
            missing = program.requires - self.features
            if missing:
                raise DTypeError(
                    f"{program.label} needs {', '.join(sorted(missing))}, "
                    f"which {self.name} ({self.info.name}) lacks"
                )
            variants = tuple(
                (pairs, variant if variant is None else self.pipeline(variant, checked=checked))
                for pairs, variant in in_place
            )
            made = Pipeline(program, checked=careful, in_place=variants)
            # Threads may come here together: the first one's pipeline is everyone's.
            found = self._pipelines.setdefault(key, made)
        return found

    def pipelines(self) -> list[Pipeline]:
        """All that were asked for, compiled or not."""
        return list(self._pipelines.values())

    def dispatch(
        self,
        pipeline: Pipeline,
        buffers: Sequence[Buffer],
        params: bytes = b"",
        grid: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        """Record one dispatch."""
        self.queue.dispatch(pipeline, buffers, params, grid)

    def compute(
        self,
        pipeline: Pipeline,
        inputs: Sequence[Buffer],
        nbytes: int,
        params: bytes = b"",
        grid: tuple[int, int, int] = (1, 1, 1),
        label: str = "",
    ) -> Buffer:
        """Record one dispatch into a new buffer of `nbytes` bytes, which is the kernel's last binding."""
        return self.queue.compute(pipeline, inputs, nbytes, params, grid, label)

    def flush(self) -> Event | None:
        """Submit what is recorded, without waiting."""
        return self.queue.flush("eval")

    def synchronize(self) -> None:
        """Submit what is recorded and wait until the GPU has done it."""
        self.queue.synchronize()

    # Accounts

    def stats(self) -> Stats:
        """The counters, with the pool's bytes."""
        pool = self.queue.context.pool
        readings = {
            "bytes_live": pool.bytes_live,
            "bytes_pooled": pool.bytes_free,
            "bytes_peak": pool.bytes_peak,
        }
        waiting = self.queue.waiting
        return Stats({**self.counters.as_dict(), **readings, "commands": self.counters.commands + waiting})

    def reset_stats(self) -> None:
        """Set the counters to zero, and the peak to what is in use now."""
        self.counters.reset()
        pool = self.queue.context.pool
        pool.bytes_peak = pool.bytes_live
