"""Choosing for real plans: measured once, kept, found again; off, nothing is read or written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.runtime.helpers import bench
from webgrad import config, dtypes
from webgrad.errors import DeviceLostError, OutOfMemoryError
from webgrad.evaluate.evaluate import clear_plans
from webgrad.graph.node import leaf
from webgrad.graph.snapshot import snapshot, walk
from webgrad.lower.compile import choices_of
from webgrad.runtime.webgpu import Device
from webgrad.schedule.schedule import schedule
from webgrad.tensor import Tensor
from webgrad.tools.explanation import explain
from webgrad.tuning import choice
from webgrad.tuning.entries import Candidate, Entries

pytestmark = pytest.mark.gpu

X = np.random.default_rng(0).normal(size=(96, 520)).astype(np.float32)


@pytest.fixture(scope="module")
def device() -> Device:
    """A device of these tests alone."""
    return bench().device


@pytest.fixture
def cache(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache; nothing is known from other tests."""
    folder = tmp_path / "cache"
    clean_environment.setenv("WEBGRAD_CACHE", str(folder))
    config.reload()
    clear_plans()
    yield folder / "tuning"
    clear_plans()


def on(device: Device, array: Any = X) -> Tensor:
    made = leaf(device.upload(array), array.shape, dtypes.as_dtype(array.dtype), device)
    return Tensor(made)


def softmax_of(device: Device) -> Any:
    return wg.softmax(on(device), axis=-1).numpy()


def expected() -> Any:
    raised = np.exp(X.astype(np.float64) - X.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def forbidden(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("measured again")


def faked(winner: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have the choice of a number win, without measuring; gives what was offered."""
    seen: list[Any] = []

    def measure(device: Any, graph: Any, groups: Any, offered: Any, numbers: Any) -> tuple[Candidate, ...]:
        seen.append(offered)
        return tuple(Candidate(each, 0.5 if at == winner else 1.0) for at, each in enumerate(offered))

    monkeypatch.setattr(choice, "measure", measure)
    return seen


def test_off_no_file_is_touched(device: Device, cache: Path, clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(Entries, "find", forbidden)
    clean_environment.setattr(choice, "measure", forbidden)
    np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
    assert not cache.parent.exists()


def test_measured_once_and_kept(device: Device, cache: Path, clean_environment: pytest.MonkeyPatch) -> None:
    with wg.tune():
        np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
    (name,) = files(cache)
    assert name.startswith("rows-")
    clean_environment.setattr(choice, "measure", forbidden)
    for forget in (clear_plans, choice._entries.cache_clear):  # found in memory, then on disk
        clear_plans()
        forget()
        with wg.tune():
            np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
    assert files(cache) == [name]
    ((_, entry),) = Entries(cache)
    assert entry is not None
    assert entry.key["shapes"] == [[96, 520], [96, 520]]
    assert entry.key["adapter"] == device.info.name
    assert entry.key["webgrad"] == wg.__version__
    assert all(each.seconds and each.seconds > 0 for each in entry.candidates), entry.candidates


def test_the_setting_is_the_same(device: Device, cache: Path, clean_environment: pytest.MonkeyPatch) -> None:
    faked(0, clean_environment)
    clean_environment.setenv("WEBGRAD_TUNE", "1")
    config.reload()
    softmax_of(device)
    assert len(files(cache)) == 1


def test_a_damaged_entry_is_measured_again(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    seen = faked(1, clean_environment)
    with wg.tune():
        softmax_of(device)
        (name,) = files(cache)
        (cache / name).write_text("{", "utf-8")
        clear_plans()
        choice._entries.cache_clear()
        softmax_of(device)
    assert len(seen) == 2
    ((_, entry),) = Entries(cache)
    assert entry is not None
    assert entry.winner == seen[1][1]


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_the_winner_is_what_runs_and_what_explain_shows(
    winner: int, device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    seen = faked(winner, clean_environment)
    value = wg.softmax(on(device), axis=-1)
    with wg.tune():
        assert explain(value).kernels[0].choice is None  # nothing is measured for it
        assert seen == []
        np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
        explained = explain(value)
    choice = seen[0][winner]
    assert explained.kernels[0].choice == choice
    assert f"tuned: {', '.join(f'{name} {number}' for name, number in choice)}" in str(explained)
    assert explain(value).kernels[0].choice is None
    assert "tuned" not in str(explain(value))


def test_a_gain_within_the_noise_is_none(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    def measure(device: Any, graph: Any, groups: Any, offered: Any, numbers: Any) -> tuple[Candidate, ...]:
        return tuple(Candidate(each, 1.0 if at == 0 else 0.99) for at, each in enumerate(offered))

    clean_environment.setattr(choice, "measure", measure)
    with wg.tune():
        softmax_of(device)
    ((_, entry),) = Entries(cache)
    assert entry is not None
    assert (entry.winner, entry.gain) == (entry.candidates[0].choice, 1.0)


def test_small_work_and_maps_have_nothing_to_measure(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    clean_environment.setattr(choice, "measure", forbidden)
    with wg.tune():
        assert wg.sum(on(device, X[:2])).item() == pytest.approx(X[:2].sum(), rel=1e-3)
        assert wg.sum(on(device, X[:0])).item() == 0
        wg.exp(on(device)).numpy()
    assert files(cache) == []


def test_without_room_there_is_the_default(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    def crowded(*arguments: Any) -> Any:
        raise OutOfMemoryError("no room")

    clean_environment.setattr(choice, "measure", crowded)
    with wg.tune():
        np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
    assert files(cache) == []


def test_a_lost_device_is_said(device: Device, cache: Path, clean_environment: pytest.MonkeyPatch) -> None:
    def lost(*arguments: Any) -> Any:
        raise DeviceLostError("the GPU device was lost")

    clean_environment.setattr(choice, "measure", lost)
    with wg.tune():
        with pytest.raises(DeviceLostError):
            softmax_of(device)
        clean_environment.setattr(choice, "measure", forbidden)  # it might be lost again
        np.testing.assert_allclose(softmax_of(device), expected(), rtol=1e-5)
    assert files(cache) == []


def test_run_time_numbers_are_those_of_the_run(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def measure(device: Any, graph: Any, groups: Any, offered: Any, numbers: Any) -> tuple[Candidate, ...]:
        seen.extend(numbers.values())
        return tuple(Candidate(each, 1.0) for each in offered)

    clean_environment.setattr(choice, "measure", measure)
    with wg.tune():
        wg.softmax(on(device) * 0.625, axis=-1).numpy()
    assert 0.625 in seen


def test_a_captured_function_is_captured_once_for_each(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch
) -> None:
    seen = faked(1, clean_environment)
    captured = wg.jit(lambda x, scale: wg.softmax(x * scale, axis=-1))
    x = on(device)
    for _ in range(3):
        np.testing.assert_allclose(captured(x, 1.0).numpy(), expected(), rtol=1e-5)
    assert seen == []
    with wg.tune():
        for _ in range(3):
            np.testing.assert_allclose(captured(x, 1.0).numpy(), expected(), rtol=1e-5)
    assert len(seen) == 1
    assert captured.captures == 2  # type: ignore[attr-defined]


def key(device: Device, array: Any = X, *, transposed: bool = False) -> dict[str, Any]:
    x = on(device, array)
    value = wg.softmax(x.T if transposed else x, axis=-1)
    made = schedule(snapshot(walk([value.node]), [value.node]), device.profile)
    (group,) = made.groups
    return choice.key_of(device, made.graph, [group], choices_of(made.graph, [group], device.profile))


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"driver": "Mesa 26"}, "driver"),
        ({"name": "another"}, "adapter"),
        ({"backend": "metal"}, "backend"),
    ],
)
def test_the_key_is_of_one_adapter_and_driver(changed: dict[str, str], differs: str, device: Device) -> None:
    before = key(device)
    info = device.info
    try:
        device.info = replace(info, **changed)  # type: ignore[arg-type]
        after = key(device)
    finally:
        device.info = info
    assert {name for name in before if before[name] != after[name]} == {differs}


def test_the_key_is_of_one_version(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(device)
    monkeypatch.setattr(choice, "__version__", "9.9")
    choice._versions.cache_clear()
    try:
        assert key(device) == before | {"webgrad": "9.9"}
    finally:
        choice._versions.cache_clear()


def test_the_key_knows_shapes_dtypes_and_layouts(device: Device) -> None:
    square = X[:, :96]
    keys = [
        key(device, np.ascontiguousarray(square)),
        key(device, np.ascontiguousarray(square), transposed=True),
        key(device, X),
        key(device, X.astype(np.float16)),
    ]
    assert key(device, X + 1) == keys[2]
    assert len({str(each) for each in keys}) == 4


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_on_a_terminal_and_none_elsewhere(
    device: Device, cache: Path, clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faked(1, clean_environment)
    with wg.tune():
        softmax_of(device)
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    clean_environment.setenv("COLUMNS", "200")
    clean_environment.setattr("sys.stderr", terminal)
    clear_plans()
    choice.entries().clear()
    with wg.tune():
        softmax_of(device)
    text = terminal.getvalue()
    assert "tuning kernel 1, rows_max_subtract_exp_sum_divide [96, 520]: " in text
    assert text.rstrip(" \n").endswith("1 of them faster, up to 2.00 ×")
    assert max(map(len, text.splitlines())) < 200
    clear_plans()
    terminal.truncate(0)
    with wg.tune():
        softmax_of(device)  # known: nothing to say
    assert terminal.getvalue() == ""
