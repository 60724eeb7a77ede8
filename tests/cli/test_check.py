"""`webgrad check`: exit codes, and what is told of scripts and models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.models.tiny import CONFIG, weights_of, write_folder
from tests.tools.checking.faults import library_fault
from webgrad.cli import main, protocols

SCRIPT = """
import sys
import numpy as np
import webgrad as wg

def layer(x, w):
    return wg.gelu(x @ w)

x = wg.asarray(np.linspace(-3, 3, 64, dtype=np.float32).reshape(8, 8))
print(sys.argv[1:], x.device.name.partition(":")[0], float(layer(x, x).sum()) > 0)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "work.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


@pytest.mark.gpu
def test_a_script_that_is_right(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = wg.default_device()
    assert main(["check", "--device", "webgpu", str(script), "--json", "a"]) == 0
    text = capsys.readouterr().out
    assert "['--json', 'a'] webgpu True" in text
    assert "agrees with the cpu" in text
    assert wg.default_device() is before


@pytest.mark.gpu
def test_a_wrong_constant_in_gelu_is_named(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with library_fault("0.737438381", "0.7375"):
        assert main(["check", str(script)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("gelu of float32 [8, 8] gives float32 [8, 8]: wrong on webgpu")
    assert f"made at {script}:7\n    return wg.gelu(x @ w)" in text
    assert "this op is wrong by itself" in text
    written = Path(text.rstrip().rpartition(" is in ")[2])
    assert "fn wg_gelu" in written.read_text("utf-8")
    written.unlink()
    with library_fault("0.737438381", "0.7375"):
        assert main(["check", "--wgsl", str(script)]) == 1
        assert "fn wg_gelu" in capsys.readouterr().out
        assert main(["check", "--json", "--all", str(script)]) == 1
    found = json.loads(capsys.readouterr().out)  # what the script prints is on stderr
    assert not found["ok"]
    assert found["divergences"][0]["op"] == "gelu"


@pytest.mark.gpu
def test_a_script_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import webgrad as wg\nfloat(wg.ones(3).sum())\nraise KeyError('here')\n", "utf-8")
    assert main(["check", str(path)]) == 2
    out, error = capsys.readouterr()
    assert "KeyError: 'here'" in error
    assert "ended with exit code 1" in error
    assert "agrees with the cpu: 1 kernel of " in out


@pytest.mark.gpu
def test_a_script_that_computes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "idle.py"
    path.write_text("import webgrad as wg\nwg.ones(3)\n", "utf-8")
    assert main(["check", str(path)]) == 2
    assert "computed nothing" in capsys.readouterr().err


@pytest.mark.gpu
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none.py")]) == 2
    assert "there is no script" in capsys.readouterr().err
    assert main(["check", "--device", "cpu", "minilm"]) == 2
    assert "check holds a GPU against the cpu, and the device is the cpu" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["check", "minilm", "--steps", "3", "more"])
    assert end.value.code == 2
    assert "only a script" in capsys.readouterr().err


class _Words:
    """A tokenizer of single letters."""

    def encode(self, text: str) -> list[int]:
        return [ord(each) % 40 for each in text]


@pytest.mark.gpu
def test_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIG | {"num_hidden_layers": 1, "vocab_size": 48, "intermediate_size": 64}
    folder = write_folder(tmp_path, config, weights_of(config))

    def load(name: str, device: str) -> Any:
        model = wg.models.load(name, device=device)
        monkeypatch.setattr(model, "_tokenizer", _Words())
        return model

    monkeypatch.setattr(protocols, "load", load)
    assert main(["check", str(folder), "--steps", "2", "--prompt", "boats"]) == 0
    text = capsys.readouterr().out
    assert "step 2 (token 6): cosine 1.0000000, the same token" in text
    assert "every cosine is at least 0.99999" in text or "every cosine is at least 1.000000" in text
    with library_fault("fn wg_sigmoid(x: F) -> F {", "fn wg_sigmoid(y: F) -> F { let x = y * F(-1.0);"):
        assert main(["check", str(folder), "--json", "--prompt", "boats"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert found["steps"][0]["cosine"] < 0.999
        assert found["nodes"]["divergences"][0]["op"] == "sigmoid"
        assert main(["check", str(folder), "--prompt", "boats"]) == 1
    assert "REFUSED: " in capsys.readouterr().out
    assert main(["check", str(folder), "--prompt", ""]) == 2
    assert "--prompt has no token" in capsys.readouterr().err
