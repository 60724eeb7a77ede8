"""The examples that run ONNX models: their own work on made-up data, and, where the models are, all of it."""

from __future__ import annotations

import sys
import wave
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.examples.test_examples import EXAMPLES, run
from tests.missing import need_model


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What examples import from each other is found."""
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


def imported(name: str) -> Any:
    return __import__(name)


# Boxes of text


def test_regions_are_pixels_that_touch() -> None:
    marked = np.asarray([[1, 1, 0, 0, 1], [0, 0, 1, 0, 1], [1, 0, 0, 0, 1], [1, 0, 1, 1, 1]], bool)
    found = [
        set(zip(*map(np.ndarray.tolist, each), strict=True))
        for each in imported("text_boxes").regions(marked)
    ]
    assert sorted(map(len, found)) == [2, 3, 6]
    assert {(0, 0), (0, 1), (1, 2)} in found
    assert list(imported("text_boxes").regions(np.zeros((3, 4), bool))) == []


@pytest.mark.parametrize("angle", [0, 12, -30])
def test_boxes_lie_around_lines_as_they_are_turned(angle: float) -> None:
    boxes = imported("text_boxes")
    turn = np.deg2rad(angle)
    across, down = np.asarray([np.cos(turn), np.sin(turn)]), np.asarray([-np.sin(turn), np.cos(turn)])
    y, x = np.mgrid[0:120, 0:160]
    from_middle = np.stack([x - 80, y - 60], -1)
    chances = np.where((abs(from_middle @ across) < 50) & (abs(from_middle @ down) < 8), 0.9, 0.0)
    [box] = boxes.boxes_of(chances)
    by = 1.6 * 100 * 16 / (2 * 116)
    assert boxes.sides(box) == pytest.approx((100 + 2 * by, 16 + 2 * by), abs=3)
    np.testing.assert_allclose(box[1] - box[0], across * boxes.sides(box)[0], atol=3)
    assert boxes.boxes_of(chances * 0.5) == []


def test_what_is_cut_out_is_upright() -> None:
    boxes = imported("text_boxes")
    pixels = np.arange(6 * 8 * 3).reshape(6, 8, 3).astype(float)
    straight = np.asarray([[2, 1], [6, 1], [6, 4], [2, 4]], float)
    np.testing.assert_allclose(boxes.cut_out(pixels, straight), pixels[1:4, 2:6])
    on_its_side = np.roll(straight, -1, axis=0)  # its first corner is the upper right
    np.testing.assert_allclose(boxes.cut_out(pixels, on_its_side), np.rot90(pixels[1:4, 2:6]))


def test_lines_are_read_from_the_top_and_the_left() -> None:
    corners = np.asarray([[0, 0], [10, 0], [10, 4], [0, 4]], float)
    places = [(0, 0), (20, 1), (40, 0), (0, 10), (30, 9)]
    mixed = [corners + places[at] for at in (3, 2, 4, 0, 1)]
    found = imported("text_boxes").in_reading_order(mixed)
    assert [tuple(box[0]) for box in found] == [(0, 0), (20, 1), (40, 0), (0, 10), (30, 9)]


# Sounds


def test_spans_of_speech() -> None:
    spans = imported("voice_activity").spans
    frame = 512 / 16000
    chances = [0.1] * 5 + [0.9] * 20 + [0.4] * 3 + [0.9] * 5 + [0.1] * 10 + [0.9] * 2 + [0.1] * 9 + [0.8] * 10
    speech = spans(chances, len(chances) * frame)
    expected = [(5 * frame - 0.03, 33 * frame + 0.03), (54 * frame - 0.03, 64 * frame)]
    np.testing.assert_allclose(speech, expected)
    assert spans([], 0.0) == []


@pytest.mark.parametrize("rate", [8000, 22050, 48000])
def test_sounds_of_other_rates_keep_their_tone(rate: int) -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    found = imported("voice_activity").resampled(tone, rate)
    expected = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    np.testing.assert_allclose(found[400:-400], expected[400:-400], atol=0.01)


def test_tones_that_the_rate_cannot_hold_vanish() -> None:
    tone = np.sin(2 * np.pi * 15000 * np.arange(48000) / 48000)
    assert abs(imported("voice_activity").resampled(tone, 48000)[400:-400]).max() < 0.01


# With the models


def test_file_kinds(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    need_model(pytestconfig, "magika")
    (tmp_path / "program").write_text("import sys\n\n\ndef main():\n    print(sys.argv)\n\n\nmain()\n" * 8)
    (tmp_path / "page").write_text(
        "<!DOCTYPE html><html><head><title>A</title></head><body><p>B</p></body></html>\n" * 6
    )
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "short").write_text("abc")
    done = run("file_kinds.py", "program", "page", "nothing", "short", folder=tmp_path)
    kinds = [line.split()[1] for line in done.stdout.splitlines()]
    assert kinds == ["python", "html", "empty", "txt"], done.stderr


def test_voice_activity(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    need_model(pytestconfig, "silero-vad")
    with wave.open(str(tmp_path / "silence.wav"), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(4 * 8000))
    done = run("voice_activity.py", "silence.wav", "--picture", "s.svg", folder=tmp_path)
    assert done.stdout == "0.00 s of speech in 1.00 s\n", done.stderr
    picture = ElementTree.parse(tmp_path / "s.svg")
    assert len(picture.findall(".//*[@class='chances']")) == 1
    assert picture.findall(".//*[@class='span']") == []


def test_read_text(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    for name in ("det", "cls", "rec"):
        need_model(pytestconfig, f"pp-ocr-{name}")
    page = Path(__file__).parent / "page.png"
    done = run("read_text.py", page, "--boxes", "b.svg", "--longest", "320", folder=tmp_path)
    assert done.stdout == "Hello world\nNumber 2046\n", done.stderr
    assert len(ElementTree.parse(tmp_path / "b.svg").findall(".//{*}polygon")) == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("read_text.py none.png", "error: none.png cannot be read"),
        ("file_kinds.py none", "there is no file none"),
        ("voice_activity.py none.wav", "error: none.wav cannot be read"),
        ("read_text.py page.png --boxes no/b.svg", "argument --boxes: there is no folder no"),
    ],
)
def test_mistakes_are_one_line(command: str, message: str, tmp_path: Path) -> None:
    done = run(*command.split(), folder=tmp_path)
    assert done.returncode
    assert message in done.stderr
    assert "Traceback" not in done.stderr
