"""Exported ONNX models give in Dawn and in browsers what they give in Python; a form takes pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.io.test_pictures import png
from tests.missing import need_model
from tests.onnx.models import model, node
from tests.pages import DrivenBrowser
from tests.web.exported import run_exports
from tests.web.test_models import RUN, called, opened
from webgrad.cli import main
from webgrad.web.server import serving

SHAPES = {"pp-ocr-det": (1, 3, 96, 160), "magika": (1, 2048), "pp-ocr-cls": (1, 3, 48, 192)}


def exported(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A page of a model of the catalogue: an input by its name, and what Python makes of it."""
    made = wg.onnx.load(name, device="cpu")
    [declared] = made.inputs
    random = np.random.default_rng(3)
    shape = SHAPES[name]
    given: Any = random.random(shape, np.float32)
    if name == "magika":
        given = random.integers(32, 127, shape).astype(np.int32)
    sides = ",".join(map(str, shape))
    assert main(["export", name, str(folder), "--shape", f"{declared.name}={sides}"]) == 0
    expected = {_plain(key): each.numpy() for key, each in made(given).items()}
    return {declared.name: given}, expected


def _plain(name: str) -> str:
    return name.replace("/", "_").replace(".", "_").replace(":", "_")


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-3 * abs(values).max())


@pytest.mark.web
@pytest.mark.usefixtures("dawn")
def test_models_of_the_catalogue_in_dawn(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    jobs, wanted = [], []
    for name in SHAPES:
        need_model(pytestconfig, name)
        given, expected = exported(name, tmp_path / name)
        jobs.append((tmp_path / name, "", [("run", given)]))
        wanted.append(expected)
    for [found], expected in zip(run_exports(jobs), wanted, strict=True):
        check(found, expected)


@pytest.mark.web
@pytest.mark.parametrize("name", SHAPES)
def test_models_of_the_catalogue_in_browsers(
    any_browser: DrivenBrowser, name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    need_model(pytestconfig, name)
    given, expected = exported(name, tmp_path)
    flat = {key: each.reshape(-1).tolist() for key, each in given.items()}
    [answer] = called(any_browser, tmp_path, RUN, [["run", flat]])
    check({key: np.reshape(each["data"], each["shape"]) for key, each in answer.items()}, expected)


@pytest.mark.web
def test_a_form_takes_a_picture(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    data = model([node("Neg", "x", "y")], {"x": [1, 3, 16, 24]}, {"y": [1, 3, 16, 24]})
    (tmp_path / "m.onnx").write_bytes(data)
    out = tmp_path / "out"
    assert main(["export", str(tmp_path / "m.onnx"), str(out), "--mean", "0.5", "--std", "0.5"]) == 0
    pixels = np.zeros((32, 48, 3), int)
    pixels[:, :, 0] = 255
    (tmp_path / "red.png").write_bytes(png(pixels, 8, 2))
    with serving(out) as address:
        page = opened(any_browser, address)
        page.choose_files("#picture-x", [tmp_path / "red.png"])
        page.wait_for("document.querySelector('#outputs .result') !== null")
        told = page.text("#outputs")
        assert page.errors() == []
    facts = json.loads((out / "page.json").read_text(encoding="utf-8"))
    assert facts["pictures"]["x"]["height"] == 16
    assert "-1" in told.replace("−", "-")  # red, of which the half is taken and by which is divided
    assert "0.3333" in told  # the mean of -1, 1 and 1
