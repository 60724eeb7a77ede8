"""The first use of a GPU: right numbers, the size of subgroups, what is kept, and what is used instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.helpers import bench
from webgrad.device_profile import GPU_PROFILES
from webgrad.errors import DeviceError
from webgrad.runtime import adapters, trial, webgpu
from webgrad.runtime import device as devices
from webgrad.runtime.adapters import AdapterInfo
from webgrad.runtime.device import default_device, open_device
from webgrad.runtime.trial import Trial, is_tried, trial_of
from webgrad.runtime.webgpu import Device

NVIDIA, INTEL = 0x10DE, 0x8086

pytestmark = pytest.mark.gpu


def device_of(cache: Path, vendor: int = NVIDIA, **settings: Any) -> Device:
    """The test adapter, as if it were somebody's GPU that is used for the first time."""
    shared = bench().device
    info = replace(shared.info, type="discrete", vendor_id=vendor, subgroup_sizes=(4, 128))
    return Device(info, replace(shared.settings, cache=cache, **settings))


def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "TEXT", trial.TEXT.replace("* 3u", "* 5u"))


def test_a_gpu_of_one_size(tmp_path: Path) -> None:
    own = bench().device.profile.subgroup_size
    assert trial_of(device_of(tmp_path)) == Trial("", own)
    assert trial_of(device_of(tmp_path, INTEL)) == Trial("", 0)  # whose compiler chooses for each kernel


def test_sizes_that_depend_on_the_workgroup() -> None:
    nvidia = replace(bench().device.info, vendor_id=NVIDIA)
    lanes = trial._lanes
    assert lanes(nvidia, {32: {32}, 64: {64}, 256: {64}}) == 64  # a workgroup of 32 does not fill one of 64
    assert lanes(nvidia, {32: {32}, 64: {32}, 256: {64}}) == 0
    assert lanes(nvidia, {32: {32}, 64: {32}, 256: {32}}) == 32
    alike = {threads: {64} for threads in (32, 64, 256)}
    assert lanes(replace(nvidia, vendor_id=0x1002, driver="Mesa 25"), alike) == 64
    assert lanes(replace(nvidia, vendor_id=0x1002, driver="AMD"), alike) == 0


def test_what_is_kept_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = trial_of(device_of(tmp_path))
    (file,) = (tmp_path / "adapters").iterdir()
    wrong(monkeypatch)
    assert trial_of(device_of(tmp_path)) == found
    other = device_of(tmp_path)
    other.info = replace(other.info, driver="a newer one")
    assert trial_of(other).problem
    for damaged in ("", "[]", "null", '{"format": 1}', json.dumps({"format": 1, "lanes": "8", "key": {}})):
        file.write_text(damaged, encoding="utf-8")
        assert trial_of(device_of(tmp_path)).problem


def test_wrong_numbers_are_told_and_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong(monkeypatch)
    found = trial_of(device_of(tmp_path))
    assert "of 32 numbers of its first kernel are wrong" in found.problem
    assert not (tmp_path / "adapters").exists()


def test_a_kernel_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trial, "TEXT", trial.TEXT.replace("3u", "3f"))
    assert trial_of(device_of(tmp_path)).problem.startswith("its first kernel failed: ")


def test_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert trial_of(device_of(tmp_path / "file")).problem == ""


def test_what_a_device_learns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    noted: list[AdapterInfo] = []
    monkeypatch.setattr(adapters, "note_subgroups", noted.append)
    device = device_of(tmp_path)
    device.info = replace(device.info, name="some GPU")  # not lavapipe's, by which its lanes are known
    monkeypatch.setattr(webgpu, "is_tried", lambda info: True)
    assert device.learn() == ""
    assert device.stats()["dispatches"] == 0
    own = bench().device.profile.subgroup_size
    assert device.profile.subgroup_size == own
    assert [each.subgroup_sizes for each in noted] == [(own, own)]


def test_adapters_are_listed_with_what_was_learnt() -> None:
    info = adapters.list_adapters()[0]
    try:
        adapters.note_subgroups(replace(info, subgroup_sizes=(64, 64)))
        assert adapters.list_adapters()[0] == replace(info, subgroup_sizes=(64, 64))
    finally:
        adapters.note_subgroups(info)


def test_programs_that_play_gpus_are_not_tried() -> None:
    info = bench().device.info
    assert not is_tried(info)
    assert not is_tried(replace(info, type="discrete", backend="browser"))
    assert is_tried(replace(info, type="discrete"))


# Which device is used


@pytest.fixture
def two_gpus(clean_environment: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A process that has opened nothing, where two GPUs are; call it with the problem of each."""
    real = adapters.list_adapters()[0]
    made = [replace(real, type="discrete", device=f"webgpu:{at}", name=f"GPU {at}") for at in (8, 9)]
    problems: dict[str, str] = {}
    nothing: dict[str, Any] = {"shared": {}, "default": None, "chosen": None, "distrusted": set()}
    for name, value in nothing.items():
        clean_environment.setattr(devices._opened, name, value)
    clean_environment.setattr(adapters, "list_adapters", lambda: tuple(made))
    clean_environment.setattr(webgpu, "trial_of", lambda device: Trial(problems[device.name], 0))

    def begin(first: str, second: str) -> None:
        problems.update({"webgpu:8": first, "webgpu:9": second})

    return begin


def test_a_right_gpu_is_the_default(two_gpus: Callable[[str, str], None]) -> None:
    two_gpus("", "all is wrong")
    assert default_device() == "webgpu:8"


def test_the_next_is_used_where_numbers_are_wrong(two_gpus: Callable[[str, str], None]) -> None:
    two_gpus("all is wrong", "")
    with pytest.warns(RuntimeWarning, match=r"webgpu:8 \(GPU 8\) is not used: all is wrong\. Update its"):
        assert default_device() == "webgpu:9"
    assert default_device() == "webgpu:9"
    for name in ("webgpu:8", "webgpu"):
        with pytest.raises(DeviceError, match="WEBGRAD_PROFILE has it used all the same"):
            open_device(name)


def test_the_cpu_where_all_are_wrong(two_gpus: Callable[[str, str], None]) -> None:
    two_gpus("all is wrong", "so is all here")
    with pytest.warns(RuntimeWarning) as told:
        assert default_device() == "cpu"
    assert [str(each.message)[:8] for each in told] == ["webgpu:8", "webgpu:9"]


# Profiles by name


@pytest.mark.parametrize("name", GPU_PROFILES)
def test_a_profile_is_forced(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch)  # and no trial is made
    device = device_of(tmp_path, profile=name)
    assert device.learn() == ""
    kind, lanes = GPU_PROFILES[name]
    assert (device.profile.kind, device.profile.subgroup_size) == (kind, lanes)


def test_a_software_adapter_keeps_its_own_subgroups() -> None:
    shared = bench().device
    forced = Device(shared.info, replace(shared.settings, profile="navi31"))
    assert (forced.profile.kind, forced.profile.subgroup_size) == ("discrete", 0)


def test_without_subgroups_none_are_forced(tmp_path: Path) -> None:
    device = device_of(tmp_path, profile="navi31")
    without = Device(replace(device.info, features=frozenset()), device.settings)
    assert without.profile.subgroup_size == 0
