"""Small kernels, and what is counted in them; nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from tests.schedule.graphs import SOFTWARE, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node
from webgrad.lower.builder import Builder
from webgrad.lower.compile import compile_schedule, lower_bundle
from webgrad.lower.ir import Buffer, Instruction, Kernel, Type, verify
from webgrad.tensor import Tensor

__all__ = ["F32", "F32x4", "copy_kernel", "kernel_of", "levels", "lowered", "raw", "texts"]

F32, F32x4 = Type("f32"), Type("f32", 4)
BUFFERS = (Buffer(0, dtypes.float32, 64), Buffer(1, dtypes.float32, 64, written=True))


def kernel_of(*body: Instruction, buffers: tuple[Buffer, ...] = BUFFERS) -> Kernel:
    """A kernel of these instructions over one input and one output of 64 floats."""
    return Kernel("test", buffers, (), body, 8, 1)


def copy_kernel() -> Kernel:
    """output[thread] = input[thread], for the threads below 16, four at once."""
    build = Builder()
    thread = build.emit("thread", Type("u32"), (), "local")
    build.open_if(build.compare("<", thread, build.constant(16)))
    build.here("store", None, (thread, build.emit("load", F32x4, (thread,), 0)), 1)
    build.close()
    return kernel_of(*build.body())


def raw(*roots: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> list[Kernel]:
    """The kernels of a graph before any pass, verified."""
    plan = planned(*roots, profile=profile)
    made = []
    for bundle in plan.bundles:
        kernel = lower_bundle(plan.graph, [plan.groups[each] for each in bundle], profile)
        verify(kernel)
        made.append(kernel)
    return made


def lowered(*roots: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> list[Kernel]:
    """The kernels of a graph after all passes, each verified."""
    compiled = compile_schedule(planned(*roots, profile=profile), profile, check=True)
    return [each.kernel for _, launches in compiled for each in launches]


def texts(*roots: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> list[str]:
    """The programs' texts of a graph, which are the keys of its pipelines."""
    compiled = compile_schedule(planned(*roots, profile=profile), profile)
    return [each.program.text for _, launches in compiled for each in launches]


def levels(kernel: Kernel) -> Iterator[tuple[int, Instruction]]:
    """Every instruction with the number of loops and conditions around it."""
    depth = 0
    for each in kernel.body:
        depth -= each.op in ("end_loop", "end_if")
        yield depth, each
        depth += each.op in ("loop", "if")
