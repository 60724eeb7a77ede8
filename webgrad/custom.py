"""A user's own kernel: WGSL (or .pwgsl) source as a callable over buffers, checked before every launch.

Comes in: source text, then buffers, parameters by name and a grid. Goes out: one recorded dispatch. The
invariant: what does not fit the source (a missing parameter, a buffer too small, a grid too large) is an
error in Python, and users' kernels keep the compiler's bounds checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from .errors import DeviceError, LaunchError
from .graph.node import user_frame
from .observing import Note, observers
from .runtime.buffers import Buffer
from .runtime.checks import checked_grid
from .runtime.device import CpuDevice, open_device
from .runtime.pipelines import Pipeline
from .runtime.webgpu import Device
from .wgsl import Program, program_from_source
from .wgsl.packing import ParamValue, packer

__all__ = ["Kernel", "kernel"]

Grid = int | Sequence[int]


class Kernel:
    """A compiled kernel; call it with buffers, `grid` or `threads`, and its parameters by name.

    >>> wg.kernel("@compute @workgroup_size(1) fn nothing() {}", device="webgpu")
    <Kernel nothing()>
    """

    def __init__(self, program: Program, device: Device) -> None:
        self.program = program
        self.device = device
        self._pipeline = device.pipeline(program, checked=True)
        self._names = tuple(field.name for field in program.params)
        self._packer = packer(program)
        for name in sorted({"grid", "threads"} & set(self._names)):
            raise LaunchError(
                f"{program.label}: a parameter cannot be called {name}, as a launch's own are; rename it"
            )
        device.queue.compile(self._pipeline)  # a shader error belongs here, not to a later flush

    def __repr__(self) -> str:
        bindings = ", ".join(f"{each.name}: {each.access} {each.type}" for each in self.program.bindings)
        params = "".join(f", {each.name}: {each.type}" for each in self.program.params)
        return f"<Kernel {self.program.entry}({bindings}{params})>"

    def __call__(
        self, *buffers: Buffer, grid: Grid | None = None, threads: Grid | None = None, **params: ParamValue
    ) -> None:
        """Record one launch over `grid` workgroups, or over at least `threads` invocations."""
        sizes = [self.device.queue.size_of(each) for each in buffers]
        pipeline, data, workgroups = self.prepare(sizes, grid, threads, params)
        queue = self.device.queue
        with queue.lock:
            queue.dispatch(pipeline, buffers, data, workgroups)
            if observers() and all(workgroups):
                queue.annotate(Note(self.program.label, where=user_frame(), bytes_read=sum(sizes)))

    def prepare(
        self, sizes: Sequence[int], grid: Grid | None, threads: Grid | None, params: Mapping[str, ParamValue]
    ) -> tuple[Pipeline, bytes, tuple[int, int, int]]:
        """Check a launch over buffers of these sizes; gives what is to be recorded."""
        self._check_buffers(sizes)
        for what, names in (
            ("missing", [name for name in self._names if name not in params]),
            ("unknown", [name for name in params if name not in self._names]),
        ):
            if names:
                takes = ", ".join(f"{each.name}: {each.type}" for each in self.program.params) or "none"
                raise LaunchError(
                    f"{self.program.label} takes the parameters ({takes}); {what}: {', '.join(names)}"
                )
        data = self._packer.pack(*[params[name] for name in self._names])
        return self._pipeline, data, self._workgroups(grid, threads)

    def _check_buffers(self, sizes: Sequence[int]) -> None:
        bindings = self.program.bindings
        if len(sizes) != len(bindings):
            names = ", ".join(each.name for each in bindings) or "none"
            raise LaunchError(
                f"{self.program.label} takes {len(bindings)} buffers ({names}), not {len(sizes)}"
            )
        for binding, nbytes in zip(bindings, sizes, strict=True):
            step = min(binding.element_bytes, 4)
            if 0 < nbytes < binding.bytes or (step and nbytes % step):
                raise LaunchError(
                    f"{self.program.label}: a buffer of {nbytes} bytes does not fit {binding.name}, which is "
                    f"{binding.type}: {binding.bytes} bytes or more, whole words"
                )

    def _workgroups(self, grid: Grid | None, threads: Grid | None) -> tuple[int, int, int]:
        label = self.program.label
        if (grid is None) == (threads is None):
            raise LaunchError(f"{label}: give either grid= (workgroups) or threads= (invocations)")
        counts = _three(label, grid if grid is not None else threads)
        if threads is not None and min(counts) >= 0:
            size = self.program.workgroup_size
            counts = tuple(-(-count // width) for count, width in zip(counts, size, strict=True))
        return checked_grid(label, counts, self.device.queue.limits.max_workgroups)


def _three(label: str, counts: Any) -> tuple[int, ...]:
    try:
        values = tuple(map(index, counts)) if isinstance(counts, Sequence) else (index(counts),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3:
        raise LaunchError(f"{label}: a grid is one to three whole numbers, not {counts!r}")
    return (*values, 1, 1)[:3]


def kernel(
    source: str,
    *,
    entry: str | None = None,
    label: str = "kernel",
    defines: dict[str, str | int | float | bool] | None = None,
    device: Device | CpuDevice | str | None = None,
) -> Kernel:
    """A kernel from WGSL, or from .pwgsl with `defines`, for a GPU device.

    Storage buffers are `@group(0) @binding(n) var<storage, …>`; parameters are one `var<uniform>` struct of
    scalars and vectors. `entry` names the entry point where there are several.

    >>> device = wg.open_device("webgpu")
    >>> double = wg.kernel(\"\"\"
    ... @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    ... @compute @workgroup_size(64)
    ... fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    ...     if (id.x < arrayLength(&x)) { x[id.x] *= 2.0; }
    ... }\"\"\", device=device)
    >>> buffer = device.upload(np.arange(4, dtype=np.float32))
    >>> double(buffer, threads=4)
    >>> np.frombuffer(device.read(buffer), np.float32).tolist()
    [0.0, 2.0, 4.0, 6.0]
    """
    if not isinstance(source, str):
        raise LaunchError(f"a kernel's source is WGSL text, not a {type(source).__name__}")
    chosen = open_device(device)
    if not isinstance(chosen, Device):
        raise DeviceError(
            "kernels written in WGSL need a GPU, and the device is cpu: pass device='webgpu' for any "
            "adapter, a software one included, or see `webgrad info` for what to install"
        )
    return Kernel(program_from_source(source, entry=entry, label=label, defines=defines), chosen)
