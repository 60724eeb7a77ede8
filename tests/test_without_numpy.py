"""Without NumPy: tensors on a GPU are made, computed with and read all the same; what needs it says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.limits import HANG
from tests.numpyless import PROGRAMS, results

ROOT = Path(__file__).parents[1]
CHILD = """
import json, sys
sys.modules["numpy"] = sys.modules["ml_dtypes"] = None
import webgrad as wg
from tests.numpyless import ROWS, results

def said(run):
    try:
        return repr(run())
    except wg.WebgradError as error:
        return f"{type(error).__name__}: {error}"

found = {"default": wg.ones(1).device.name, "cpu": said(lambda: wg.ones(2, device="cpu"))}
wg.set_default_device("webgpu:0")
found["programs"] = results()
x = wg.asarray(ROWS)
found["numpy"] = said(x.numpy)
found["text"] = [repr(x), str(x), repr(wg.arange(5000)), repr(wg.zeros((0, 3))), repr(wg.asarray([1 - 2j]))]
found["large"] = repr(wg.arange(100000.0).reshape((100, 1000)))
found["inverse"] = said(lambda: wg.linalg.inv(wg.eye(33)))
found["small inverse"] = (wg.linalg.inv(x[:, :2]) @ x[:, :2] - wg.eye(2)).abs().max().item()
found["lists"] = said(lambda: wg.asarray([[1, 2], [3]]))
found["words"] = said(lambda: wg.asarray(["a"]))
found["too large"] = said(lambda: wg.asarray([1 << 40]))
found["fft"] = [[each.real, each.imag] for each in wg.fft.fft(wg.arange(13.0)).tolist()]
print(json.dumps(found))
"""
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def without() -> Any:
    environment = {name: value for name, value in os.environ.items() if name != "WEBGRAD_DEVICE"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def natively() -> dict[str, str]:
    wg.set_default_device("webgpu:0")
    try:
        return results()
    finally:
        wg.set_default_device(None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_with_numpy(
    name: str, without: dict[str, Any], natively: dict[str, str]
) -> None:
    assert "Error: " not in natively[name]
    assert without["programs"][name] == natively[name]


def test_what_needs_numpy_says_so(without: dict[str, Any]) -> None:
    assert without["numpy"].startswith("MissingPackageError: x.numpy() needs NumPy, which is not installed")
    assert without["numpy"].endswith("Without it x.tolist() and x.memoryview() do")
    assert without["cpu"].startswith("MissingPackageError: the cpu device needs NumPy")
    assert without["inverse"].startswith("MissingPackageError: ")
    assert without["small inverse"] < 1e-5  # by a kernel of the GPU


def test_the_default_is_a_gpu_then(without: dict[str, Any]) -> None:
    assert without["default"].startswith("webgpu:")


def test_mistakes_are_told_as_ever(without: dict[str, Any]) -> None:
    assert without["lists"].startswith(
        "ShapeError: asarray: these values do not make an array: it has lists of different shapes ["
    )
    assert without["words"].startswith("DTypeError: asarray: a str ")
    assert without["too large"].startswith("DTypeError: asarray: 1099511627776 does not fit int32")


def test_text(without: dict[str, Any]) -> None:
    written, plain, long, empty, complex_ = without["text"]
    assert written == (
        "tensor([[  0.5, -1.25,    2.],\n        [  3.5,  0.25, -0.75]], dtype=float32, device=webgpu:0)"
    )
    assert plain == "[[  0.5 -1.25    2.]\n [  3.5  0.25 -0.75]]"
    facts = "\n       shape=(5000,), dtype=int32, device=webgpu:0)"
    assert long == f"tensor([   0,    1,    2, ..., 4997, 4998, 4999],{facts}"
    assert empty == "tensor([], shape=(0, 3), dtype=float32, device=webgpu:0)"
    assert complex_ == "tensor([1.-2.j], dtype=complex64, device=webgpu:0)"
    lines = without["large"].splitlines()
    assert lines[1] == "        [ 1000.,  1001.,  1002., ...,  1997.,  1998.,  1999.],"
    assert lines[3] == "        ...,"
    assert len(lines) == 8


def test_fourier_transforms(without: dict[str, Any]) -> None:
    import numpy as np

    expected = np.fft.fft(np.arange(13))
    found = np.array(without["fft"]) @ (1, 1j)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
