"""Adapters: description, ranking, the choice and its reasons, switching off, and the guard against forks."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.limits import HANG
from webgrad.config import Settings
from webgrad.errors import DeviceError, ForkError, NoAdapterError
from webgrad.runtime import adapters
from webgrad.runtime.adapters import AdapterInfo, choose, describe, list_adapters, raw_adapter

DEFAULT = Settings()


def raw(name: str, kind: str, backend: str, *features: str, vendor_id: int = 0) -> Any:
    info = {
        "device": name,
        "vendor": "maker",
        "description": "driver 1.2",
        "adapter_type": kind,
        "backend_type": backend,
        "vendor_id": vendor_id,
        "stackgroup_min_size": 32,
        "stackgroup_max_size": 64,
    }
    return SimpleNamespace(info=info, features=set(features), limits={"max-buffer-size": 1 << 28})


RADEON = raw("Radeon RX (RADV)", "DiscreteGPU", "Vulkan", "shader-f16", "subgroup", vendor_id=1)
RADEON_GL = raw("Radeon RX (radeonsi)", "DiscreteGPU", "OpenGL", vendor_id=1)
RADEON_DX = raw("Radeon RX (RADV)", "DiscreteGPU", "D3D12", vendor_id=1)
IRIS = raw("Iris Xe", "IntegratedGPU", "Vulkan", "immediates", vendor_id=2)
OLD_GL = raw("Ancient GPU", "Unknown", "OpenGLES", vendor_id=3)
LAVAPIPE = raw("llvmpipe (LLVM 15)", "CPU", "Vulkan", "shader-f16", vendor_id=4)


@pytest.fixture
def machine(clean_environment: pytest.MonkeyPatch) -> Any:
    """A function that says which raw adapters this machine has."""
    adapters.clear_adapters()

    def has(*raws: Any, problem: str = "") -> tuple[AdapterInfo, ...]:
        adapters.clear_adapters()
        clean_environment.setattr(adapters, "_enumerate", lambda disabled: (list(raws), problem))
        return list_adapters(DEFAULT)

    yield has
    adapters.clear_adapters()


def names(infos: Sequence[AdapterInfo]) -> list[str]:
    return [f"{info.device} {info.name} {info.backend}" for info in infos]


def test_description() -> None:
    info = describe(RADEON.info, RADEON.features, RADEON.limits)
    assert (info.name, info.vendor, info.driver) == ("Radeon RX (RADV)", "maker", "driver 1.2")
    assert (info.backend, info.type, info.software) == ("vulkan", "discrete", False)
    assert info.features == {"f16", "subgroups"}
    assert info.raw_features == {"shader-f16", "subgroup"}
    assert info.missing == ("f64", "int64", "timestamps", "immediates", "f32-atomics")
    assert (info.subgroup_sizes, info.limits["max-buffer-size"]) == ((32, 64), 1 << 28)
    assert hash(info) == hash(replace(info))


def test_float64_needs_integers_of_64_bits() -> None:
    for raw_features, expected in (
        ({"shader-f64"}, set()),
        ({"shader-int64"}, {"int64"}),
        ({"shader-f64", "shader-int64"}, {"f64", "int64"}),
    ):
        assert describe(RADEON.info, raw_features, RADEON.limits).features == expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("llvmpipe (LLVM 15)", "CPU", "software"),
        ("SwiftShader Device (Subzero)", "Unknown", "software"),
        ("Microsoft Basic Render Driver", "IntegratedGPU", "software"),
        ("Virtio-GPU Venus (Radeon)", "CPU", "other"),
        ("something new", "Quantum", "other"),
    ],
)
def test_kinds(name: str, kind: str, expected: str) -> None:
    each = raw(name, kind, "Vulkan")
    assert describe(each.info, each.features, each.limits).type == expected


def test_ranking(machine: Any) -> None:
    assert names(machine(RADEON_GL, LAVAPIPE, OLD_GL, IRIS, RADEON_DX, RADEON)) == [
        "webgpu:0 Radeon RX (RADV) vulkan",
        "webgpu:1 Radeon RX (RADV) dx12",
        "webgpu:2 Iris Xe vulkan",
        "webgpu:3 Ancient GPU opengl",
        "webgpu:4 llvmpipe (LLVM 15) vulkan",
        "webgpu:5 Radeon RX (radeonsi) opengl",
    ]


def test_the_raw_adapter_follows_its_number(machine: Any) -> None:
    machine(IRIS, RADEON)
    assert raw_adapter(0) is RADEON
    assert raw_adapter(1) is IRIS
    with pytest.raises(NoAdapterError, match="webgpu:2 was asked for"):
        raw_adapter(2)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(disable_backends=frozenset({"vulkan"})), ["webgpu:2"]),
        (Settings(disable_devices=("0",)), ["webgpu:1", "webgpu:2"]),
        (Settings(disable_devices=("webgpu:1",)), ["webgpu:0", "webgpu:2"]),
        (Settings(disable_devices=("radeon",)), ["webgpu:1"]),
    ],
)
def test_switched_off_devices_leave_the_other_numbers_alone(
    settings: Settings, expected: list[str], machine: Any
) -> None:
    machine(RADEON, IRIS, RADEON_GL)
    assert [info.device for info in list_adapters(settings)] == expected


def test_features_can_be_switched_off(machine: Any) -> None:
    machine(IRIS, RADEON)
    without = list_adapters(Settings(disable_features=frozenset({"f16"}), immediates=False))
    assert [info.features for info in without] == [{"subgroups"}, set()]
    assert "shader-f16" in without[0].raw_features


@pytest.mark.parametrize(
    ("raws", "device", "reason"),
    [
        ((RADEON, IRIS, LAVAPIPE), "webgpu:0", "the only discrete GPU"),
        ((RADEON, RADEON_DX), "webgpu:0", "the only discrete GPU"),
        ((RADEON, raw("Arc", "DiscreteGPU", "Vulkan")), "webgpu:0", "the first of 2 discrete GPUs"),
        ((IRIS,), "webgpu:0", "the only integrated GPU"),
        ((OLD_GL,), "webgpu:0", "the only GPU of unknown kind"),
        (
            (LAVAPIPE,),
            "cpu",
            "no GPU; webgpu:0 is a software adapter, and those are used only when asked for",
        ),
        ((), "cpu", "no GPU adapter was found"),
    ],
)
def test_the_default(raws: tuple[Any, ...], device: str, reason: str, machine: Any) -> None:
    choice = choose(None, machine(*raws), DEFAULT)
    assert (choice.device, choice.reason) == (device, reason)


@pytest.mark.parametrize(
    ("spec", "device", "reason"),
    [
        ("cpu", "cpu", "cpu was asked for"),
        ("webgpu", "webgpu:0", "webgpu was asked for, and this is the best of 3 that fit"),
        ("webgpu:1", "webgpu:1", "webgpu:1 was asked for"),
        ("LLVMpipe", "webgpu:2", "LLVMpipe was asked for"),
    ],
)
def test_a_device_asked_for(spec: str, device: str, reason: str, machine: Any) -> None:
    choice = choose(spec, machine(RADEON, IRIS, LAVAPIPE), DEFAULT)
    assert (choice.device, choice.reason) == (device, reason)


def test_webgpu_takes_a_software_adapter_where_there_is_no_other(machine: Any) -> None:
    assert choose("webgpu", machine(LAVAPIPE), DEFAULT).adapter.software


def test_the_setting_is_the_default_and_is_named(machine: Any) -> None:
    settings = Settings(device="iris", sources={"device": "WEBGRAD_DEVICE"})
    choice = choose(None, machine(RADEON, IRIS), settings)
    assert (choice.device, choice.reason) == ("webgpu:1", "iris was asked for by WEBGRAD_DEVICE")
    with pytest.raises(NoAdapterError, match="iris was asked for by WEBGRAD_DEVICE, and there is no such"):
        choose(None, machine(RADEON), settings)


def test_a_missing_adapter_lists_what_there_is(machine: Any) -> None:
    settings = Settings(disable_devices=("Iris",), sources={"disable_devices": "the file:disable_devices"})
    machine(RADEON, IRIS)
    with pytest.raises(NoAdapterError) as caught:
        choose("webgpu:1", list_adapters(settings), settings)
    assert str(caught.value) == (
        "webgpu:1 was asked for, and there is no such GPU adapter.\n"
        "There are: webgpu:0 = Radeon RX (RADV); and cpu.\n"
        "Switched off by the file:disable_devices: Iris."
    )


def test_no_adapter_at_all_says_what_to_install(machine: Any) -> None:
    infos = machine(problem="wgpu cannot be loaded (no such file)")
    with pytest.raises(
        NoAdapterError, match=r"(?s)wgpu cannot be loaded.*To get one: .*Or use the device cpu"
    ):
        choose("webgpu", infos, DEFAULT)
    assert adapters.enumeration_problem() == "wgpu cannot be loaded (no such file)"


def test_a_nameless_device_is_an_error() -> None:
    with pytest.raises(DeviceError, match="a device must have a name"):
        choose("", (), DEFAULT)


def test_devices_end_with_the_cpu(machine: Any) -> None:
    machine(IRIS)
    gpu, cpu = adapters.devices()
    assert (gpu.device, cpu.device, cpu.type, cpu.index) == ("webgpu:0", "cpu", "cpu", -1)
    assert cpu.name
    assert cpu.limits["cores"] >= 1


def test_wgpu_is_asked_once(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(IRIS)
    monkeypatch.setattr(adapters, "_enumerate", lambda disabled: pytest.fail("asked twice"))
    assert list_adapters(DEFAULT)[0].name == "Iris Xe"


def _list_in_child(pipe: Any) -> None:
    try:
        list_adapters(DEFAULT)
        pipe.send("listed")
    except ForkError as error:
        pipe.send(str(error))


@pytest.mark.fault
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_error_instead_of_a_hang(machine: Any) -> None:
    machine(IRIS)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_list_in_child, args=(there,))
    child.start()
    assert here.poll(30)
    message = here.recv()
    child.join(HANG)
    assert f"first used in process {os.getpid()}" in message
    assert "'spawn'" in message


LIST = """
from pathlib import Path
from webgrad.runtime.adapters import list_adapters
print(*(each.backend for each in list_adapters()))
loaded = Path("/proc/self/maps").read_text()
print(*(name for name in ("libvulkan.so", "libEGL.so") if name in loaded))
"""


@pytest.mark.gpu
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("off", "backends", "libraries"),
    [("opengl", {"vulkan"}, ["libvulkan.so"]), ("vulkan,opengl", set(), [])],
)
def test_a_disabled_backend_is_not_even_loaded(off: str, backends: set[str], libraries: list[str]) -> None:
    environment = os.environ | {"WEBGRAD_DISABLE_BACKENDS": off}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LIST], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    listed, loaded = done.stdout.splitlines()
    assert set(listed.split()) == backends
    assert loaded.split() == libraries


@pytest.mark.gpu
def test_this_machine() -> None:
    first = list_adapters(DEFAULT)[0]
    assert first.device == "webgpu:0"
    assert first.backend != "opengl"
    assert first.limits["max-buffer-size"] > 0
    assert raw_adapter(0).info["device"] == first.name
