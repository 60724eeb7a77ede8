"""Probes of the machine around the devices: cores, NumPy's BLAS, native code, memory, settings.

In: the cpu device. Out: findings.
"""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

from ... import config
from ...arrays import np
from ...native import compiler
from ...runtime import host
from ...runtime.device import CpuDevice
from .findings import Finding, amount, note, ok

__all__ = ["blas_library", "memory", "native_code", "processor", "settings"]


def processor(device: CpuDevice) -> Finding:
    """The processor, and the cores this process may use."""
    cores, there = host.processor_cores(), os.cpu_count() or 1
    text = f"{device.info.name}, {cores} of {there} cores"
    if cores < there:
        advice = "this process is kept to some of the cores (taskset, a container's cpuset): widen that"
        return note("processor", text, advice, cores=cores, cores_there=there)
    return ok("processor", text, cores=cores, cores_there=there)


def memory(device: CpuDevice) -> Finding:
    """The machine's memory."""
    total = host.memory_bytes()
    if not total:
        return ok("memory", "unknown here", memory=0)
    if total < 4 << 30:
        advice = "take small models, in quantised files, and set WEBGRAD_MEMORY"
        return note("memory", amount(total), advice, memory=total)
    return ok("memory", amount(total), memory=total)


def blas_library(device: CpuDevice) -> Finding:
    """The library behind NumPy's matrix products."""
    built: Any = np.show_config(mode="dicts")
    found = (built or {}).get("Build Dependencies", {}).get("blas", {})
    name, version = str(found.get("name", "unknown")), str(found.get("version", ""))
    text = f"NumPy {np.__version__} with {name} {version}".rstrip()
    return ok("BLAS", text, blas=name, version=version)


def native_code(device: CpuDevice) -> Finding:
    """llvmlite, with which graphs become native code on the cpu."""
    try:
        version = importlib.metadata.version("llvmlite")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if compiler.is_available():
        return ok("native code", f"llvmlite {version}", llvmlite=version)
    if not version:
        advice = (
            "the cpu is several times as quick with it, where there are wheels of it: pip install llvmlite"
        )
        return note("native code", "llvmlite is not installed", advice, llvmlite="")
    if not config.settings().native:
        return note("native code", "switched off", "unset WEBGRAD_NATIVE to have it", llvmlite=version)
    advice = f"it needs llvmlite {'.'.join(map(str, compiler.OLDEST))} or newer, on x86-64 or ARM64"
    return note("native code", f"none with llvmlite {version} here", advice, llvmlite=version)


def settings(device: CpuDevice) -> Finding:
    """Variables and switches that change what webgrad does."""
    unknown = [name for name, _ in config.unknown_variables()]
    if unknown:
        advice = "these mean nothing to webgrad: `webgrad info` says which name may be meant"
        return note("settings", f"unknown: {', '.join(unknown)}", advice, unknown=unknown)
    current = config.settings()
    changed = [each.name for each in config.OPTIONS if current.source(each.name) != "default"]
    text = f"changed: {', '.join(changed)}" if changed else "all as webgrad has them"
    return ok("settings", text, unknown=[], changed=changed)
