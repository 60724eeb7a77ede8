"""The machine around the devices: what is missing is told with what to install."""

from __future__ import annotations

import importlib.metadata
import os

import pytest

from webgrad import config
from webgrad.native import compiler
from webgrad.runtime import host
from webgrad.runtime.device import CpuDevice
from webgrad.tools.probes import machine

CPU = CpuDevice()


def test_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.processor(CPU).figures["cores"] == host.processor_cores()
    monkeypatch.setattr(os, "cpu_count", lambda: host.processor_cores() + 4)
    assert machine.processor(CPU).verdict == "note"
    for nbytes, verdict in ((0, "ok"), (1 << 30, "note"), (1 << 34, "ok")):
        monkeypatch.setattr(host, "memory_bytes", lambda nbytes=nbytes: nbytes)
        assert machine.memory(CPU).verdict == verdict


def test_blas() -> None:
    assert machine.blas_library(CPU).figures["blas"]


def test_native_code(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(compiler, "is_available", lambda: False)
    clean_environment.setattr(importlib.metadata, "version", lambda name: "0.1.0")
    assert "0.45 or newer" in machine.native_code(CPU).advice
    clean_environment.setenv("WEBGRAD_NATIVE", "0")
    config.reload()
    assert machine.native_code(CPU).text == "switched off"

    def none(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    clean_environment.setattr(importlib.metadata, "version", none)
    assert "pip install llvmlite" in machine.native_code(CPU).advice


def test_settings(clean_environment: pytest.MonkeyPatch) -> None:
    assert machine.settings(CPU).text == "all as webgrad has them"
    clean_environment.setenv("WEBGRAD_QUEUE", "128")
    config.reload()
    assert machine.settings(CPU).text == "changed: queue"
    clean_environment.setenv("WEBGRAD_QUEU", "128")
    assert machine.settings(CPU).text == "unknown: WEBGRAD_QUEU"
