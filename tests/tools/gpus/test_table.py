"""Which GPUs can be asked, what that needs, and the variables under which one of them opens."""

from __future__ import annotations

from pathlib import Path

import pytest

import webgrad as wg
from webgrad.tools.gpus.table import GPUS, environment, missing, named


def installed(root: Path) -> Path:
    for path in ("lib/x86_64-linux-gnu/libamdgpu_noop_drm_shim.so", "share/vulkan/icd.d/radeon_icd.json"):
        (root / "usr" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "usr" / path).touch()
    return root


def test_names() -> None:
    assert [each.name for each in named("NAVI31, navi10,navi31")] == ["navi31", "navi10"]
    assert named(" all ") == tuple(GPUS.values())
    with pytest.raises(wg.ArgumentError, match="no GPU 'voodoo2' to ask about; there are polaris10, "):
        named("navi31,voodoo2")


def test_what_is_missing(tmp_path: Path) -> None:
    gpu = GPUS["navi31"]
    assert "libamdgpu_noop_drm_shim.so and radeon_icd.json are not both" in missing(gpu, [tmp_path])
    with pytest.raises(wg.ArgumentError, match="run `make gpus`"):
        environment(gpu, [tmp_path])
    assert missing(gpu, [tmp_path, installed(tmp_path / "other")]) == ""


def test_the_variables(tmp_path: Path) -> None:
    found = environment(GPUS["vega10"], [installed(tmp_path)])
    assert found["AMDGPU_GPU_ID"] == "vega10"
    assert found["LD_PRELOAD"] == str(tmp_path / "usr/lib/x86_64-linux-gnu/libamdgpu_noop_drm_shim.so")
    assert found["VK_DRIVER_FILES"] == str(tmp_path / "usr/share/vulkan/icd.d/radeon_icd.json")


def test_rows_hold_together() -> None:
    for gpu in GPUS.values():
        assert gpu.lanes == tuple(sorted(gpu.lanes))
        assert gpu.most > 0
