"""What kernel choosers know of a device: a plain record, so that choosing needs no GPU.

`kind` decides which kernel shapes are tried: "software" adapters want few threads, wide loads and no
barriers; "integrated" and "discrete" GPUs want many threads and workgroup memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

ProfileKind = Literal["software", "integrated", "discrete"]
MAX_PARAMS = (
    128  # bytes of parameters that travel with a command: what every native device with immediates has
)


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """The facts about a device on which the choice of a kernel may depend."""

    kind: ProfileKind
    features: frozenset[str] = frozenset()  # of: f16 f64 int64 subgroups timestamps immediates f32-atomics
    subgroup_size: int = 0  # 0: no subgroups, or their size is not fixed
    max_invocations: int = 256
    max_workgroup_storage: int = 16384
    max_workgroups: int = 65535
    max_storage_buffers: int = 8
    max_binding_bytes: int = 128 * 2**20

    @property
    def part_bytes(self) -> int:
        """The bytes of each binding of a value that is larger than one may be: whole pages if it can be."""
        return self.max_binding_bytes // 4096 * 4096 or self.max_binding_bytes


# Name of a GPU → its kind, and the lanes of a subgroup; 0 where its compiler chooses them for each kernel.
GPU_PROFILES: Mapping[str, tuple[ProfileKind, int]] = MappingProxyType(
    {
        "polaris10": ("discrete", 64),
        "vega10": ("discrete", 64),
        "renoir": ("integrated", 64),
        "navi10": ("discrete", 64),
        "navi21": ("discrete", 64),
        "navi31": ("discrete", 64),
        "gfx1150": ("integrated", 64),
        "turing": ("discrete", 32),
        "ampere": ("discrete", 32),
        "m1": ("integrated", 32),
        "adreno740": ("integrated", 0),
        "tgl": ("integrated", 0),
        "dg2": ("discrete", 0),
    }
)
PORTABLE = DeviceProfile("discrete")  # its limits are the least that WebGPU promises of every device
CPU_PROFILE = DeviceProfile("software", max_storage_buffers=64, max_binding_bytes=1 << 62)
