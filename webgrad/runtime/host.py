"""Facts about this machine: its processor and memory, and what to install where no GPU adapter is found.

In: the operating system's own files. Out: plain records and sentences. Nothing here touches a GPU, and
every question has an answer on every platform, if only "unknown".
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .shield import shield

OS_RELEASE = Path("/etc/os-release")
CPU_INFO = Path("/proc/cpuinfo")
CACHE_SIZE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")  # "2048K"
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


@dataclass(frozen=True, slots=True)
class Host:
    """The operating system, as far as advice depends on it."""

    platform: str  # sys.platform
    distributions: tuple[str, ...] = ()  # ID and ID_LIKE of os-release, nearest first
    version: str = ""  # VERSION_ID
    container: bool = False
    has_render_node: bool = False  # /dev/dri is there


def parse_os_release(text: str) -> dict[str, str]:
    """The fields of an os-release file."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def this_host() -> Host:
    """The machine this process runs on."""
    fields = parse_os_release(OS_RELEASE.read_text(encoding="utf-8")) if OS_RELEASE.is_file() else {}
    return Host(
        platform=sys.platform,
        distributions=(fields.get("ID", ""), *fields.get("ID_LIKE", "").split()),
        version=fields.get("VERSION_ID", ""),
        container=any(mark.exists() for mark in CONTAINER_MARKS),
        has_render_node=Path("/dev/dri").exists(),
    )


_MESA = "mesa-vulkan-drivers libvulkan1"
_DEBIAN_12 = (
    "add the bookworm-backports suite to apt's sources, then: "
    f"apt-get install -t bookworm-backports {_MESA} "
    "(Debian 12's own Mesa 22 is ten times slower in software)"
)
# (distribution, version or "" for any) → what to do; the first row that fits is taken.
_LINUX: tuple[tuple[str, str, str], ...] = (
    ("debian", "12", _DEBIAN_12),
    ("ubuntu", "", f"apt-get install {_MESA}"),
    ("debian", "", f"apt-get install {_MESA}"),
    ("fedora", "", "dnf install mesa-vulkan-drivers vulkan-loader"),
    ("rhel", "", "dnf install mesa-vulkan-drivers vulkan-loader"),
    (
        "arch",
        "",
        "pacman -S vulkan-icd-loader and one of vulkan-radeon, vulkan-intel, nvidia-utils, vulkan-swrast",
    ),
    ("suse", "", "zypper install libvulkan1 libvulkan_radeon libvulkan_intel libvulkan_lvp"),
)
_OTHER_SYSTEMS = {
    "darwin": "Metal comes with macOS; a virtual machine without a Metal device has no adapter",
    "win32": "update the GPU's driver (Direct3D 12 comes with Windows 10 and later)",
    "emscripten": "native adapters do not exist in a browser",
}


def install_advice(host: Host, *, has_software: bool = False) -> tuple[str, ...]:
    """What to do on this machine so that a GPU adapter is found, one sentence each.

    `has_software` says that a software adapter is there: the loader and Mesa are then installed already.
    """
    if host.platform != "linux":
        return (_OTHER_SYSTEMS.get(host.platform, "install a Vulkan driver for the GPU"),)
    advice: tuple[str, ...] = () if has_software else (_linux_packages(host),)
    advice += ("an NVIDIA GPU needs NVIDIA's own driver, with its Vulkan part, and libvulkan",)
    if host.container and not host.has_render_node:
        advice += (
            "this is a container without /dev/dri: pass the GPU in with --device /dev/dri, or for NVIDIA "
            "--gpus all and NVIDIA_DRIVER_CAPABILITIES=all",
        )
    return advice


def _linux_packages(host: Host) -> str:
    for distribution, version, command in _LINUX:
        # A derivative has "debian" in ID_LIKE but versions of its own: a version is compared for the ID only.
        if version and (host.distributions[:1], host.version) != ((distribution,), version):
            continue
        if distribution in host.distributions:
            return command
    return "install the Mesa Vulkan drivers and the Vulkan loader (libvulkan)"


def processor_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def processor_name() -> str:
    """The processor's name as its maker writes it, or its architecture where that is not to be had."""
    name = ""
    if CPU_INFO.is_file():
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    elif sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return name or platform.processor() or platform.machine() or "unknown processor"


def cache_bytes() -> int:
    """The size of a core's second-level cache; half a MiB where the system does not tell."""
    with shield:  # an OSError of a signal's handler is not the system's
        try:
            return int(CACHE_SIZE.read_text(encoding="utf-8").strip().removesuffix("K")) << 10
        except (OSError, ValueError):
            return 1 << 19


def memory_bytes() -> int:
    """The machine's memory, or 0 where it cannot be asked for."""
    with shield:
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return _windows_memory_bytes()


def _windows_memory_bytes() -> int:
    import ctypes

    windll = getattr(ctypes, "windll", None)
    if windll is None:
        return 0
    # MEMORYSTATUSEX: its length, the load, then seven 64-bit sizes of which the first is the total.
    status = (ctypes.c_uint64 * 8)()
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    return status[1] if windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else 0


def resident_bytes() -> int:
    """The memory that this process takes up now, or 0 where it cannot be asked for."""
    with shield:
        try:
            return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, AttributeError, ValueError):
            return 0
