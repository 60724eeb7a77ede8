"""The GPUs whose compilers can be asked, and how: one row for a GPU, one for a driver.

In: a GPU's name, as the user writes it. Out: its rows, the environment in which its driver opens, and what
is missing here for that. The drivers are Mesa's; a library of Mesa's, loaded before all others, plays the
kernel's part, so that nothing is executed and every result is zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ArgumentError
from .amd import parse_radv
from .listing import Statistics

__all__ = ["GPUS", "Driver", "Gpu", "environment", "missing", "named"]

ROOTS = (Path("/"),)  # where Mesa may be installed
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_MANIFESTS = "usr/share/vulkan/icd.d"


@dataclass(frozen=True, slots=True)
class Driver:
    """A Vulkan driver, and how it is made to open without its GPU and to talk."""

    title: str
    library: str  # that plays the kernel
    manifest: str  # of the Vulkan driver
    chip: str  # the variable that says which GPU is played
    talk: Mapping[str, str]  # variables that make its compiler print
    parse: Callable[[str, Gpu], Statistics]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that can be asked about. `name` is the user's word, and the driver's."""

    name: str
    title: str
    architecture: str
    driver: Driver
    lanes: tuple[int, ...]  # sizes of a subgroup that the driver may choose, least first
    most: int  # subgroups of the least size that a SIMD holds at once


RADV = Driver(
    "RADV",
    "libamdgpu_noop_drm_shim.so",
    "radeon_icd.json",
    "AMDGPU_GPU_ID",
    {"RADV_DEBUG": "shaders,shaderstats,nocache"},
    lambda text, gpu: parse_radv(text, gpu.lanes, gpu.most),
)
GPUS: Mapping[str, Gpu] = {
    each.name: each
    for each in (
        Gpu("polaris10", "Radeon RX 580", "GCN 4", RADV, (64,), 8),
        Gpu("vega10", "Radeon RX Vega 64", "GCN 5", RADV, (64,), 10),
        Gpu("renoir", "Radeon Graphics of Ryzen 4000", "GCN 5, integrated", RADV, (64,), 10),
        Gpu("navi10", "Radeon RX 5700 XT", "RDNA", RADV, (32, 64), 20),
        Gpu("navi21", "Radeon RX 6800", "RDNA 2", RADV, (32, 64), 16),
        Gpu("navi31", "Radeon RX 7900 XTX", "RDNA 3", RADV, (32, 64), 16),
        Gpu("gfx1150", "Radeon 890M", "RDNA 3.5, integrated", RADV, (32, 64), 16),
    )
}


def named(words: str) -> tuple[Gpu, ...]:
    """The GPUs of a list of names, or all."""
    if words.strip().lower() == "all":
        return tuple(GPUS.values())
    names = [word.strip().lower() for word in words.split(",")]
    if unknown := [name for name in names if name not in GPUS]:
        raise ArgumentError(
            f"there is no GPU {unknown[0]!r} to ask about; there are {', '.join(GPUS)}, and all"
        )
    return tuple(GPUS[name] for name in dict.fromkeys(names))


def missing(gpu: Gpu, roots: Sequence[Path] = ROOTS) -> str:
    """What has to be installed before a GPU's compiler can be asked; "" where nothing."""
    if _root(gpu.driver, roots) is not None:
        return ""
    files = f"{gpu.driver.library} and {gpu.driver.manifest}"
    return (
        f"the compiler of {gpu.name} is {gpu.driver.title} of Mesa, and {files} are not both installed here"
    )


def environment(gpu: Gpu, roots: Sequence[Path] = ROOTS) -> dict[str, str]:
    """The variables under which a program sees this GPU and no other."""
    root = _root(gpu.driver, roots)
    if root is None:
        raise ArgumentError(
            f"{missing(gpu, roots)}: run `make gpus` in webgrad's sources, on Debian or Ubuntu"
        )
    return {
        "LD_PRELOAD": str(root / _LIBRARIES / gpu.driver.library),
        "VK_DRIVER_FILES": str(root / _MANIFESTS / gpu.driver.manifest),
        "WEBGRAD_DISABLE_BACKENDS": "opengl",
        gpu.driver.chip: gpu.name,
        **gpu.driver.talk,
    }


def _root(driver: Driver, roots: Sequence[Path]) -> Path | None:
    wanted = (f"{_LIBRARIES}/{driver.library}", f"{_MANIFESTS}/{driver.manifest}")
    return next((root for root in roots if all((root / each).exists() for each in wanted)), None)
