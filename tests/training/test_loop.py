"""fit: it learns, it can be stopped anywhere, and what is resumed is bit by bit what was not interrupted."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.training import History, fit, save_checkpoint

RANDOM = np.random.default_rng(0)
EVEN = RANDOM.normal(size=(24, 5)).astype(np.float32)  # batches of 8, 8 and 8: a capture fewer
INPUTS = EVEN[:22]  # 8, 8 and 6
CLASSES = (INPUTS.sum(axis=1) > 0).astype(np.int32)


both = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)], indirect=True
)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    wg.set_default_device(request.param)
    yield request.param
    wg.set_default_device(None)


@pytest.fixture
def cpu() -> Iterator[None]:
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(None)


class Run:
    """A small model with all that has a state: dropout, running statistics, averages, a rate that changes."""

    def __init__(self, seed: int = 0, inputs: np.ndarray[Any, Any] = INPUTS) -> None:
        wg.random.seed(seed)
        self.model = nn.Sequential(
            nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
        )
        classes = (inputs.sum(axis=1) > 0).astype(np.int32)
        self.loader = wg.data.DataLoader((inputs, classes), 8, shuffle=True, seed=seed)
        self.optimiser = wg.optim.AdamW(self.model.parameters(), lr=0.05)
        self.schedule = wg.optim.lr_scheduler.OneCycleLR(self.optimiser, max_lr=0.05, total_steps=9)

    def fit(self, **options: Any) -> History:
        chosen: dict[str, Any] = {"schedule": self.schedule, "epochs": 3, "show": False} | options
        return fit(self.model, self.loader, self.optimiser, wg.cross_entropy, **chosen)

    def values(self) -> dict[str, bytes]:
        return {name: each.numpy().tobytes() for name, each in self.model.state_dict().items()}


@cache
def whole(device: str) -> tuple[History, dict[str, bytes]]:
    """A run on the default device that nothing interrupts, and the values it ends with."""
    run = Run()
    return run.fit(validate=lambda: 0.5), run.values()


@both
@pytest.mark.usefixtures("device")
def test_it_learns() -> None:
    run = Run()
    history = run.fit(epochs=25, schedule=None)
    assert history.step == len(history.losses) == 75
    assert len(history.epochs) == 25
    assert np.mean(history.losses[-9:]) < 0.8 * np.mean(history.losses[:9])
    assert history.epochs[0]["loss"] == pytest.approx(np.mean(history.losses[:3]), rel=1e-6)


@both
@pytest.mark.usefixtures("device")
def test_captured_or_not() -> None:
    captured, plain = Run().fit(), Run().fit(jit=False)
    np.testing.assert_allclose(captured.losses, plain.losses, rtol=1e-5)


def interrupting(at: int) -> Callable[[int, wg.Tensor], None]:
    def on_step(step: int, loss: wg.Tensor) -> None:
        if step == at:
            signal.raise_signal(signal.SIGINT)

    return on_step


def interrupted(path: Path, at: int, inputs: np.ndarray[Any, Any] = INPUTS, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(inputs=inputs).fit(checkpoint=path, on_step=interrupting(at), **options)


@pytest.mark.parametrize(
    ("device", "at"),
    [
        *(("cpu", at) for at in (1, 3, 9)),
        pytest.param("webgpu", 5, marks=pytest.mark.gpu),
        *(pytest.param("cpu", at, marks=pytest.mark.long) for at in (5, 8)),
    ],
    indirect=["device"],
)
def test_what_is_resumed_is_what_was_not_interrupted(device: str, at: int, tmp_path: Path) -> None:
    """Three epochs of three batches; after the third step an epoch is over, after the ninth all are."""
    expected, values = whole(device)
    path = tmp_path / "run.safetensors"
    interrupted(path, at, validate=lambda: 0.5)
    assert [each.name for each in tmp_path.iterdir()] == ["run.safetensors"]
    again = Run(seed=99)  # whatever it begins with
    found = again.fit(checkpoint=path, validate=lambda: 0.5)
    assert found.losses == expected.losses
    assert found.epochs == expected.epochs
    assert again.values() == values


@pytest.mark.usefixtures("cpu")
def test_interrupted_twice_and_done_already(tmp_path: Path) -> None:
    expected, values = whole("cpu")
    path = tmp_path / "run.safetensors"
    interrupted(path, 2)
    interrupted(path, 7)
    found = Run().fit(checkpoint=path)
    assert found.losses == expected.losses
    done = Run(seed=5)
    assert done.fit(checkpoint=path).losses == expected.losses
    assert done.values() == values, "the file has all of it, and no step is left"


@pytest.mark.usefixtures("cpu")
def test_what_is_said_at_an_interruption(tmp_path: Path) -> None:
    said = io.StringIO()
    with redirect_stderr(said):
        interrupted(tmp_path / "run.safetensors", 2)
    assert "the step is finished first" in said.getvalue()
    assert "stopped after step 2; " in said.getvalue()
    assert "run.safetensors has all that is needed to go on" in said.getvalue()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("cpu")
def test_checkpoints_every_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def note(path: Path, *, step: int, **others: Any) -> None:
        steps.append(step)
        save_checkpoint(path, step=step, **others)

    monkeypatch.setattr("webgrad.training.loop.save_checkpoint", note)
    Run(inputs=EVEN).fit(checkpoint=tmp_path / "run.safetensors", every=2)
    assert steps == [2, 3, 4, 6, 6, 8, 9], "every second step, and at the end of each epoch"


@pytest.mark.usefixtures("cpu")
def test_stopping_and_going_on(tmp_path: Path) -> None:
    expected, _ = whole("cpu")
    path = tmp_path / "run.safetensors"
    part = Run().fit(checkpoint=path, on_step=lambda step, loss: step == 4)
    assert part.losses == expected.losses[:4]
    assert Run().fit(checkpoint=path).losses == expected.losses


@pytest.mark.usefixtures("cpu")
def test_batches_of_any_iterable(tmp_path: Path) -> None:
    batches = [(wg.asarray(INPUTS[at : at + 11]), wg.asarray(CLASSES[at : at + 11])) for at in (0, 11)]

    def made(stop: int | None) -> History:
        run = Run()
        path = tmp_path / "run.safetensors" if stop else None
        return fit(
            run.model, batches, run.optimiser, wg.cross_entropy, epochs=3, checkpoint=path, show=False,
            on_step=lambda step, loss: step == stop,
        )  # fmt: skip

    whole = made(None)
    made(3)
    assert made(99).losses == whole.losses


@pytest.mark.usefixtures("cpu")
def test_validation(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(inputs=EVEN)
    modes = []

    def validate() -> dict[str, Any]:
        modes.append((run.model.training, wg.is_grad_enabled()))
        return {"accuracy": wg.asarray(0.5)}

    history = run.fit(epochs=2, validate=validate, show=True)
    assert modes == [(False, False)] * 2
    assert run.model.training
    assert [each["accuracy"] for each in history.epochs] == [0.5, 0.5]
    said = capsys.readouterr().err
    assert "epoch 2/2: loss " in said
    assert ", accuracy 0.5" in said
    assert "samples/s" in said


@pytest.mark.usefixtures("cpu")
def test_clipping() -> None:
    clipped, (plain, _) = Run().fit(clip=1e-3, epochs=1), whole("cpu")
    assert clipped.losses[0] == plain.losses[0]
    assert clipped.losses[1:] != plain.losses[1:3]


@pytest.mark.usefixtures("cpu")
def test_scaled_losses(tmp_path: Path) -> None:
    plain = Run(inputs=EVEN).fit(clip=1.0)
    scaled = Run(inputs=EVEN).fit(clip=1.0, scaler=wg.amp.GradScaler(init_scale=1024.0))
    np.testing.assert_allclose(scaled.losses, plain.losses, rtol=1e-5)
    path = tmp_path / "run.safetensors"
    interrupted(path, 4, EVEN, scaler=wg.amp.GradScaler(init_scale=1024.0), clip=1.0)
    again = Run(inputs=EVEN).fit(checkpoint=path, scaler=wg.amp.GradScaler(init_scale=2.0), clip=1.0)
    assert again.losses == scaled.losses


class ByName(nn.Module):
    """A model whose batches are dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 2)

    def forward(self, batch: dict[str, Any]) -> wg.Tensor:
        return self.layer(batch["x"])  # type: ignore[no-any-return]


@pytest.mark.usefixtures("cpu")
def test_batches_that_are_dicts() -> None:
    samples = [{"x": x, "y": y} for x, y in zip(INPUTS, CLASSES, strict=True)]
    model = ByName()
    history = fit(
        model,
        wg.data.DataLoader(samples, 8),
        wg.optim.SGD(model.parameters(), lr=0.1),
        lambda x, batch: wg.cross_entropy(x, batch["y"]),
        show=False,
    )
    assert history.step == 3


@pytest.mark.usefixtures("cpu")
def test_nobody_reads_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Broken())
    assert Run(inputs=EVEN).fit(show=True).step == 9


@pytest.mark.usefixtures("cpu")
def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="epochs must be an integer"):
        Run().fit(epochs=-1)
    with pytest.raises(wg.ArgumentError, match="no parameters"):
        fit(nn.ReLU(), Run().loader, None, wg.cross_entropy)
    with pytest.raises(wg.ArgumentError, match="every must be a number of steps"):
        Run().fit(every=0)
    for place, message in (("no/run.safetensors", "no folder"), ("run.pt", "end in .safetensors")):
        with pytest.raises(wg.ModelFileError, match=message):
            Run().fit(checkpoint=tmp_path / place)
    alone = wg.data.DataLoader((np.ones((4, 2), np.float32),), 2)
    line = nn.Linear(2, 2)
    with pytest.raises(wg.ArgumentError, match=r"\(inputs …, target\), and this is a tuple of 1"):
        fit(line, alone, wg.optim.SGD(line.parameters(), lr=0.1), wg.mse_loss, show=False)
    path = tmp_path / "run.safetensors"
    run = Run()
    save_checkpoint(path, model=run.model, optimiser=run.optimiser, schedule=run.schedule, loader=run.loader)
    with pytest.raises(wg.ModelFileError, match="was not written by fit"):
        run.fit(checkpoint=path)
    steps: list[int] = []
    for wrong in (tmp_path / "run.pt", tmp_path / "no folder" / "run.safetensors"):
        with pytest.raises(wg.ModelFileError):
            run.fit(checkpoint=wrong, on_step=lambda step, loss: steps.append(step))
    assert steps == [], "said before the first step, not after an epoch"
    path.write_bytes(b"half a file")
    with pytest.raises(wg.ModelFileError, match="damaged"):
        run.fit(checkpoint=path)


@pytest.mark.gpu
def test_nothing_is_made_after_the_first_steps() -> None:
    wg.set_default_device("webgpu")
    try:
        made = []
        run = Run()
        loader = wg.data.DataLoader((INPUTS, CLASSES), 8, drop_last=True)

        def on_step(step: int, loss: wg.Tensor) -> None:
            counts = wg.stats()
            made.append((counts["pipelines_compiled"], counts["buffers_created"]))

        fit(run.model, loader, run.optimiser, wg.cross_entropy, epochs=80, on_step=on_step, show=False)
    finally:
        wg.set_default_device(None)
    assert made[4] == made[62], "the steps before the losses are first read"
    assert made[70] == made[-1]
