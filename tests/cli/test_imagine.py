"""`webgrad imagine`: pictures with their settings, options that a model takes, previews, Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.test_pipelines import SMALL
from tests.diffusion.test_wuerstchen import pipeline
from tests.onnx.tfjs import unet
from webgrad.cli import imagine, main
from webgrad.cli.diffusion_pictures import Run, in_grid
from webgrad.cli.diffusion_settings import arguments_of, texts_of

LABELS = ["T-shirt", "Sandal", "Ankle boot"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network that knows three classes, and none."""
    wg.random.seed(0)
    config = wg.diffusion.UNet2DConfig(**SMALL, in_channels=1, out_channels=1, num_class_embeds=4)
    pipe = wg.diffusion.Unconditional(wg.diffusion.UNet2D(config).eval(), wg.diffusion.DDIM(), LABELS)
    return wg.diffusion.save(pipe, tmp_path_factory.mktemp("classes"))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A folder of TensorFlow.js."""
    folder = unet(tmp_path / "graph")
    (folder / "scheduler_config.json").write_text('{"_class_name": "DDIMScheduler"}')
    return folder


def run(*words: object) -> int:
    return main(["imagine", *map(str, words), "--device", "cpu"])


def test_a_grid_is_one_file_with_its_settings(
    classes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "boots.png"
    words = [
        "--model",
        classes,
        "--class",
        "boot",
        "--guidance",
        2,
        "--grid",
        "3x2",
        "--steps",
        4,
        "--seed",
        5,
    ]
    assert run(*words, "--output", file) == 0
    picture = wg.io.read_picture(file)
    assert picture.shape == (16, 24, 3)
    pipe = wg.diffusion.load(classes, device="cpu")
    wanted = pipe(6, classes="boot", guidance=2.0, steps=4, seed=5)
    assert (picture[8:, 16:, :1] == wanted[5]).all()
    assert wg.io.picture_texts(file)["parameters"] == (
        "Classes: boot, Guidance: 2.0, Steps: 4, Size: 8x8, Scheduler: DDIM, Seed: 5, "
        f"Model: {classes.name}, Version: webgrad {wg.__version__}"
    )
    assert "Preview" not in wg.io.picture_texts(file)
    told = capsys.readouterr()
    assert told.out == f"{file}\n"
    for each in ("seed 5", "steps/s on cpu", "first step", "MB"):
        assert each in told.err


def test_several_files_and_a_report_for_programs(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", graph, "--count", 2, "--steps", 3, "--scheduler", "dpm-solver", "--json"]
    assert run(*words, "--output", tmp_path / "a.png") == 0
    record = json.loads(capsys.readouterr().out)
    files = [tmp_path / "a-1.png", tmp_path / "a-2.png"]
    assert record["files"] == list(map(str, files))
    assert (record["device"], record["steps"], record["is_whole"]) == ("cpu", 3, True)
    assert record["bytes"] > 0
    assert "Scheduler: DPMSolver, Seed: " + str(record["seed"]) in wg.io.picture_texts(files[0])["parameters"]
    first = [wg.io.read_picture(each) for each in files]
    assert run(*words, "--seed", record["seed"], "--output", tmp_path / "a.png") == 0
    assert all((wg.io.read_picture(each) == was).all() for each, was in zip(files, first, strict=True))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class", "hat"], "no class has the name 'hat': T-shirt, Sandal, Ankle boot"),
        (["--class", "7"], "the network knows classes 0 to 3"),
        (["a boot"], "takes no prompt ('a boot'); it takes --class, --guidance, --steps, --size"),
        (["--negative", "x"], "takes no --negative; it takes"),
        (["--scheduler", "warp"], "there is no scheduler 'warp', only DDPM, "),
        (["--scheduler", "flow-matching"], "FlowMatching is not for a network that was trained for DDIM"),
        (["--steps", "5000"], "steps are 1 to 1000 here, not 5000"),
        (["--device", "webgpu:77"], "webgpu:77"),
        (["--from", "none.png"], "none.png cannot be read"),
        (["--lora", "none.safetensors@0.5"], "none.safetensors cannot be read"),
    ],
)
def test_mistakes_are_told_in_one_line(
    words: list[str], message: str, classes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [
        "imagine",
        "--model",
        str(classes),
        "--output",
        str(tmp_path / "a.png"),
        "--device",
        "cpu",
        *words,
    ]
    assert main(given) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "nowhere"], "there is no model nowhere: give a folder of diffusers"),
        (["--model", "x", "--output", "a.jpg"], "the name must end in .png"),
    ],
)
def test_models_that_are_not_there(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--grid", "4"],
        ["--size", "0x8"],
        ["--strength", "2"],
        ["--grid", "99x99"],
        ["--count", "1025"],
        ["--strength", "0.5"],
        ["--mask", "hole.png"],
    ],
)
def test_options_out_of_range(words: list[str], classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run("--model", classes, *words)
    assert left.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_ctrl_c_leaves_the_last_preview(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = wg.diffusion.load(graph, device="cpu")
    real = type(pipe).steps

    def interrupted(self: Any, count: int = 1, *, steps: int = 50, seed: int | None = None) -> Iterator[Any]:
        for preview in real(self, count, steps=steps, seed=seed):
            if preview.step == 4:
                raise KeyboardInterrupt
            yield preview

    monkeypatch.setattr(type(pipe), "steps", interrupted)
    file = tmp_path / "a.png"
    assert run("--model", graph, "--steps", 10, "--seed", 1, "--preview", 0, "--output", file) == 130
    monkeypatch.undo()
    previews = list(pipe.steps(1, steps=10, seed=1))
    assert (wg.io.read_picture(file) == previews[2].pictures()[0]).all()
    assert wg.io.picture_texts(file)["Preview"] == "step 3 of 10"
    assert "stopped after step 3: a preview" in capsys.readouterr().err


def test_files_hold_previews_meanwhile(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = wg.io.write_picture

    def noted(path: Any, picture: Any, texts: Any) -> None:
        written.append(texts.get("Preview", "the picture"))
        write(path, picture, texts)

    monkeypatch.setattr(wg.io, "write_picture", noted)
    assert run("--model", graph, "--steps", 6, "--preview", 2, "--output", tmp_path / "a.png") == 0
    assert written == ["step 2 of 6", "step 4 of 6", "the picture"]


def test_settings_are_all_that_made_a_picture(classes: Path) -> None:
    class Pipe:
        size = (8, 16)

        def steps(
            self,
            prompt: str,
            *,
            negative: str | None = None,
            steps: int = 30,
            guidance: float = 7.5,
            seed: int | None = None,
            size: tuple[int, int] | None = None,
            picture: Any = None,
            strength: float = 0.8,
        ) -> None: ...

    words = ["a boot", "--model", "folder/of", "--prior", "another/one", "--dtype", "q8_0", "--steps", "4"]
    options = imagine._parser().parse_args(words)
    told = texts_of(options, Pipe(), {"prompt": ["a boot"], "steps": 4}, 5)["parameters"]
    assert told == (
        "a boot\nSteps: 4, Guidance: 7.5, Size: 16x8, Dtype: q8_0, Seed: 5, Model: of, Prior: one, "
        f"Version: webgrad {wg.__version__}"
    )
    begun = texts_of(options, Pipe(), {"prompt": ["a boot"], "picture": np.zeros(1)}, 5)
    assert "Size: 16x8, Strength: 0.8, " in begun["parameters"]


def test_the_hole_of_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    class Pipe:
        size, device = (2, 2), "cpu"

        def steps(
            self, prompt: str, *, picture: Any, mask: Any = None, strength: float = 0.8, seed: Any = None
        ) -> Iterator[Any]:
            asked.update(picture=picture, mask=mask, strength=strength)
            yield SimpleNamespace(
                step=1, steps=1, latents=wg.zeros(1, device="cpu"), pictures=lambda: picture[None]
            )

    monkeypatch.setattr(wg.diffusion, "load", lambda *given, **options: Pipe())
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    mask = np.array([[0, 255], [255, 0]], np.uint8)[:, :, None]
    wg.io.write_picture(tmp_path / "from.png", picture)
    wg.io.write_picture(tmp_path / "hole.png", mask)
    words = ["--from", tmp_path / "from.png", "--mask", tmp_path / "hole.png", "--output", tmp_path / "a.png"]
    assert run("a hen", "--model", tmp_path, *words) == 0
    assert (asked["picture"] == picture).all()
    assert (asked["mask"] == mask).all()
    told = wg.io.picture_texts(tmp_path / "a.png")["parameters"]
    assert f"a hen\nStrength: 0.8, From: {tmp_path / 'from.png'}, Mask: {tmp_path / 'hole.png'}, " in told


def test_speed_is_of_steps_and_not_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def later(seconds: float) -> None:
        nonlocal now
        now += seconds

    def previews() -> Iterator[Any]:
        for step, seconds in enumerate((5.0, 1.0, 1.0, 1.0), 1):
            later(seconds)
            latents, picture = wg.zeros(1, device="cpu"), np.zeros((1, 2, 2, 1), np.uint8)
            yield SimpleNamespace(step=step, steps=4, latents=latents, pictures=lambda made=picture: made)

    monkeypatch.setattr("time.perf_counter", lambda: now)
    monkeypatch.setattr(wg.io, "write_picture", lambda *given: later(100.0))
    run = Run([tmp_path / "a.png"], None, {}, every=1)
    assert run.follow(previews(), show=False) == 0
    assert (run.taken, run.first, run.seconds) == (4, 5.0, 8.0)
    assert run.speed == 1.0


def test_memory_is_that_of_the_models_device(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = {"webgpu:0": 2, "webgpu:1": 3}
    monkeypatch.setattr(wg, "stats", lambda device: {"bytes_peak": peaks[device]})
    assert imagine._memory("webgpu:1") == 3


def test_pictures_beside_and_below_each_other() -> None:
    pictures = np.arange(6, dtype=np.uint8).reshape(6, 1, 1, 1)
    assert in_grid(pictures, 3)[:, :, 0].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("given", [{}, {"prompt": "a hen"}])
def test_a_second_stage_alone_needs_the_first(given: dict[str, Any]) -> None:
    class Decoder:
        def steps(self, latents: Any, prompt: str = "", *, guidance: float = 0.0) -> None: ...

    with pytest.raises(
        wg.ArgumentError, match="m is the second stage of a model in two folders: give --prior"
    ):
        arguments_of(Decoder(), "m", given, 1)


def test_guidance_of_two_stages_is_that_of_the_first() -> None:
    class Stages:
        def steps(
            self, prompt: str, *, prior_guidance: float = 4.0, guidance: float = 0.0, size: Any = None
        ) -> None: ...

    found = arguments_of(Stages(), "m", {"prompt": "a hen", "guidance": 3.0}, 1)
    assert found == {"prompt": ["a hen"], "prior_guidance": 3.0}


def test_two_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipeline()
    monkeypatch.setattr(wg.diffusion, "load", lambda *given, **options: pipe)
    words = ["--model", tmp_path, "--prior", tmp_path, "--size", "256x128", "--steps", 1, "--prior-steps", 2]
    file = tmp_path / "a.png"
    assert run("a hen", *words, "--guidance", 3, "--seed", 4, "--output", file) == 0
    given: Any = {"size": (128, 256), "steps": 1, "prior_steps": 2, "prior_guidance": 3.0, "seed": 4}
    assert (wg.io.read_picture(file) == pipe("a hen", **given)[0]).all()
    told = "Prior steps: 2, Prior guidance: 3.0, Steps: 1, Guidance: 0.0, Size: 256x128, "
    assert told in wg.io.picture_texts(file)["parameters"]


def test_a_prompt_is_asked_for(classes: Path) -> None:
    class Pipe:
        def steps(self, prompt: str, *, negative: str | None = None, size: Any = None) -> None: ...

    with pytest.raises(wg.ArgumentError, match="m needs a PROMPT"):
        arguments_of(Pipe(), "m", {}, 2)
    found = arguments_of(Pipe(), "m", {"prompt": "a boot", "size": (8, 16)}, 2)
    assert found == {"prompt": ["a boot", "a boot"], "size": (8, 16)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("a.safetensors", ("a.safetensors", 1.0)), ("a@b@0.5", ("a@b", 0.5)), ("me@home", ("me@home", 1.0))],
)
def test_changes_of_weights_and_how_much_they_count(text: str, wanted: tuple[str, float]) -> None:
    assert imagine._lora(text) == wanted
