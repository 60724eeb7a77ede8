"""Replaying: what is verified, what is timed, and what a device cannot run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.tools.recording.recordings import DOUBLE, X, write

pytestmark = pytest.mark.gpu
DEVICE = "webgpu:0"


def test_a_dispatch_is_verified_and_timed(tmp_path: Path) -> None:
    report = wg.replay(write(tmp_path / "run.zip"), DEVICE)
    (row,) = report.rows
    assert report.right
    assert row.verdict == "equal"
    assert row.total == pytest.approx(3 * row.seconds)
    assert row.seconds > 0
    assert row.gigabytes_per_second == pytest.approx(512 / row.seconds / 1e9)
    assert row.gigaflops == pytest.approx(64 / row.seconds / 1e9)
    text = str(report)
    assert "recorded on an adapter, vulkan" in text
    assert "script.py:7" in text
    assert "3 dispatches, 1 distinct: 1 equal" in text


def test_the_best_adapter_is_used_where_the_default_is_the_cpu(tmp_path: Path) -> None:
    assert wg.replay(write(tmp_path / "run.zip")).device.startswith("webgpu")


def test_other_outputs_differ(tmp_path: Path) -> None:
    other = 2 * X
    other[7] += 1
    report = wg.replay(write(tmp_path / "run.zip", y=other), DEVICE)
    assert not report.right
    assert report.rows[0].verdict.startswith("differs in 1 elements from 7 on")
    assert report.counts()["differs"] == 1


def test_outputs_within_tolerance(tmp_path: Path) -> None:
    report = wg.replay(write(tmp_path / "run.zip", y=2 * X * np.float32(1 + 1e-6)), DEVICE)
    assert report.right
    assert report.counts()["within tolerance"] == 1
    assert report.rows[0].verdict.startswith("within ")


def test_without_verifying(tmp_path: Path) -> None:
    report = wg.replay(write(tmp_path / "run.zip", y=X), DEVICE, verify=False)
    assert report.right
    assert report.rows[0].verdict == "not verified"
    assert report.seconds > 0


def test_contents_that_were_not_kept(tmp_path: Path) -> None:
    report = wg.replay(write(tmp_path / "run.zip", kept=False), DEVICE)
    assert report.rows[0].verdict == "not verified"
    assert report.seconds > 0


def test_only_some_kernels(tmp_path: Path) -> None:
    path = write(tmp_path / "run.zip")
    assert len(wg.replay(path, DEVICE, only="dou*").rows) == 1
    report = wg.replay(path, DEVICE, only="half*")
    assert report.rows == ()
    assert "1 distinct ones were left out" in str(report)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"needs": ("telepathy",)}, "needs telepathy"),
        ({"grid": (1 << 20, 1, 1)}, "needs 1,048,576 workgroups in a dimension, 65,535 here"),
        ({"text": DOUBLE.replace("(64)", "(4096)")}, "needs 4,096 threads in a workgroup"),
        ({"text": DOUBLE.replace("2.0 *", "2.0 +* ")}, "refused"),
        ({"text": "no WGSL"}, "its WGSL is refused"),
        ({"entry": "other"}, "its WGSL is refused"),
        # what ends naga or drivers is refused as it is in a user's own kernel
        (
            {"text": DOUBLE.replace("2.0 * x[id.x]", "f32(sign(bitcast<u32>(x[id.x])))")},
            "`sign` is for signed numbers",
        ),
        (
            {"text": DOUBLE.replace("2.0", "(" * 2000 + "2.0" + ")" * 2000)},
            "brackets and operators deep",
        ),
    ],
)
def test_what_a_device_cannot_run_is_said_and_is_no_difference(
    change: dict[str, object], why: str, tmp_path: Path
) -> None:
    report = wg.replay(write(tmp_path / "run.zip", **change), DEVICE)  # type: ignore[arg-type]
    (row,) = report.rows
    assert row.verdict.startswith("not run: ")
    assert why in row.verdict
    assert report.right
    assert report.counts()["not run"] == 1
    assert row.total == 0


def test_an_index_out_of_bounds_stays_inside(tmp_path: Path) -> None:
    text = DOUBLE.replace("y[id.x]", "y[id.x + 4000000000u]")
    assert len(wg.replay(write(tmp_path / "run.zip", text=text), DEVICE).rows) == 1


def test_a_kernel_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.tools.recording.replay.LONGEST", 0.0)
    said: list[str] = []
    for turns in (3_000_000, 12_000_000, 48_000_000, 192_000_000):  # a short one may be done by then
        loop = f"for (var i = 0u; i < {turns}u; i++) {{ v = fract(v * 1.7 + 0.1); }}"
        text = DOUBLE.replace("y[id.x] = 2.0 * x[id.x];", f"var v = x[id.x]; {loop} y[id.x] = v;")
        try:
            wg.replay(write(tmp_path / f"{turns}.zip", text=text), DEVICE, verify=False)
        except wg.DeviceError as error:
            said.append(str(error))
            break
        finally:
            wg.synchronize(DEVICE)
    assert "double has run for 0 seconds on webgpu:0 and is not done" in "".join(said)


@pytest.mark.parametrize("change", [{"params": b""}, {"bindings": ()}])
def test_buffers_and_parameters_of_another_kernel(change: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="not those of its kernel"):
        wg.replay(write(tmp_path / "run.zip", **change), DEVICE)  # type: ignore[arg-type]


def test_signs_that_steer_a_terminal_are_not_shown(tmp_path: Path) -> None:
    report = wg.replay(write(tmp_path / "run.zip", name="\x1b[2Jdouble", line="a\nb"), DEVICE)
    assert "\x1b" not in str(report)
    assert "a?b" in str(report)


def test_arguments_that_are_not_allowed(tmp_path: Path) -> None:
    path = write(tmp_path / "run.zip")
    with pytest.raises(wg.DeviceError, match="the device is the cpu"):
        wg.replay(path, "cpu")
    with pytest.raises(wg.ArgumentError, match="repeat is 0"):
        wg.replay(path, DEVICE, repeat=0)
