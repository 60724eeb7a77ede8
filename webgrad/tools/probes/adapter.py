"""Probes of what an adapter says of itself: driver, limits, features, and the memory webgrad may use.

In: an open GPU. Out: findings, with what webgrad does without each thing that is missing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...arrays import np
from ...config import Settings
from ...runtime import host
from ...runtime.adapters import FEATURE_NAMES, PROMISED, AdapterInfo
from .findings import Finding, amount, judged, note, ok, problem

if TYPE_CHECKING:
    from ...runtime.webgpu import Device

__all__ = ["driver", "features", "limits", "memory", "opening"]

OLDEST_MESA = (23, 0)  # of software adapters: before, storage buffers are read lane by lane
_CHOOSE_VULKAN = (
    "ask for an adapter of another backend, where `webgrad info` lists one; kernels are made for it"
)


def opening(device: Device) -> Finding:
    """Whether the device opens, takes a number and gives it back."""
    began = time.perf_counter()
    given = float(device.read(device.upload(np.array([1.5], np.float32))).view(np.float32)[0])
    taken = (time.perf_counter() - began) * 1e3
    wrong = [] if given == 1.5 else [f"1.5 came back as {given}"]
    return judged("opening", f"answers within {taken:.0f}\N{NO-BREAK SPACE}ms", wrong, ms=taken)


def driver(device: Device) -> Iterator[Finding]:
    """Name, backend, kind and driver; software, OpenGL and an old Mesa are worth a word."""
    info = device.info
    facts = " · ".join(
        each for each in (info.name, info.type, info.backend, info.driver or "no version told") if each
    )
    told = {"backend": info.backend, "type": info.type, "driver": info.driver, "adapter": info.name}
    if info.software:
        sentences = "; ".join(host.install_advice(host.this_host(), has_software=True))
        yield note("adapter", facts, f"a program plays the GPU: for tests. To get a GPU: {sentences}", **told)
    elif info.backend == "opengl":
        yield note("adapter", facts, _CHOOSE_VULKAN, **told)
    else:
        yield ok("adapter", facts, **told)
    mesa = mesa_version(info)
    if mesa is not None:
        yield _mesa(mesa, info)


def mesa_version(info: AdapterInfo) -> tuple[int, int] | None:
    """Mesa's version, where it is Mesa's driver."""
    found = re.search(r"Mesa (\d+)\.(\d+)", info.driver)
    return (int(found[1]), int(found[2])) if found else None


def _mesa(version: tuple[int, int], info: AdapterInfo) -> Finding:
    text = f"Mesa {version[0]}.{version[1]}"
    if not info.software or version >= OLDEST_MESA:
        return ok("driver's age", text, mesa=list(version))
    advice = host.install_advice(host.this_host())[0]
    return problem(
        "driver's age", f"{text} is about ten times slower than Mesa 25", advice, mesa=list(version)
    )


# limit → (what to call it, whether it is bytes, what less than WebGPU promises means)
LIMITS: Mapping[str, tuple[str, bool, str]] = {
    "max-storage-buffers-per-shader-stage": ("bindings", False, "kernels fuse less"),
    "max-storage-buffer-binding-size": ("binding", True, "values are bound in more parts"),
    "max-buffer-size": ("buffer", True, "large tensors do not fit"),
    "max-compute-workgroup-storage-size": ("workgroup memory", True, "no tiles are shared"),
    "max-compute-invocations-per-workgroup": ("threads of a workgroup", False, "no tiles are shared"),
    "max-compute-workgroups-per-dimension": ("workgroups", False, "kernels of many elements fail"),
}


def limits(device: Device) -> Iterator[Finding]:
    """Each limit against the least that WebGPU promises, for which kernels are written."""
    have = device.info.limits
    short = [name for name in LIMITS if have.get(name, 0) < PROMISED[name]]
    told = ", ".join(
        f"{title}\N{NO-BREAK SPACE}{_shown(have.get(name, 0), is_bytes)}"
        for name, (title, is_bytes, _) in LIMITS.items()
    )
    figures = {name: have.get(name, 0) for name in LIMITS}
    if not short:
        yield ok("limits", told, **figures)
        return
    below = "; ".join(f"{LIMITS[name][0]} below {_shown(PROMISED[name], LIMITS[name][1])}" for name in short)
    means = ", ".join(dict.fromkeys(LIMITS[name][2] for name in short))
    yield note("limits", f"{told} ({below})", f"{means}: use an adapter of Vulkan, Metal or D3D12", **figures)


def _shown(value: int, is_bytes: bool) -> str:
    return amount(value) if is_bytes else f"{value:,}"


# feature → (what it gives, what is done without it; "" where nothing is lost)
FEATURES: Mapping[str, tuple[str, str]] = {
    "f16": (
        "kernels may load and multiply float16 directly",
        "float16 works, unpacked to float32 by the kernels, which takes longer",
    ),
    "subgroups": (
        "threads add up without workgroup memory",
        "reductions, matrix-vector products and attention go through workgroup memory, which takes longer",
    ),
    "timestamps": (
        "profiles and tuning by the GPU's own clock",
        "profiles and tuning take the host's clock around a submission, which is less exact",
    ),
    "immediates": (
        "parameters go with each launch",
        "parameters go through a uniform buffer, a little slower; WEBGRAD_IMMEDIATES may have it off",
    ),
    "int64": (
        "int64 and uint64",
        "int64 and uint64 are refused here: use int32, or the cpu for what needs them",
    ),
    "f64": (
        "float64 and complex128",
        "float64 and complex128 are refused here: use float32, or the cpu for what needs them",
    ),
    "f32-atomics": ("for kernels of your own; webgrad's need none", ""),
}


def features(device: Device) -> Iterator[Finding]:
    """What each feature gives, or what is done without it."""
    for name, (gives, without) in FEATURES.items():
        there = name in device.features
        if there or not without:
            yield ok(name, gives if there else f"not there; {gives}", there=there)
            continue
        off = FEATURE_NAMES[name] in device.info.raw_features
        text = "offered, and not used (switched off, or it needs int64)" if off else "not offered"
        yield note(name, text, without, there=False, offered=off)


def memory(device: Device) -> Finding:
    """How much webgrad lets itself take of the machine's memory."""
    total = host.memory_bytes()
    text = f"{amount(device.budget)} of {amount(total)}" if total else amount(device.budget)
    figures = {"budget": device.budget, "memory": total}
    if device.budget < 256 << 20:
        return note("memory budget", text, "raise WEBGRAD_MEMORY: models will not fit", **figures)
    if total and device.budget > total:
        return note("memory budget", text, "lower WEBGRAD_MEMORY: it is more than the machine has", **figures)
    return ok("memory budget", f"{text} ({_origin(device.settings)})", **figures)


def _origin(settings: Settings) -> str:
    return "WEBGRAD_MEMORY changes it" if settings.memory is None else f"by {settings.source('memory')}"
