"""`webgrad record`: a script, what is its own, and where the recording goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import webgrad as wg
from webgrad.cli import main
from webgrad.tools.recording.reader import RecordingReader

pytestmark = pytest.mark.gpu
SCRIPT = """
import sys
import webgrad as wg
print(sys.argv[1:], (wg.ones(4) + float(sys.argv[1])).tolist())
sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    yield path
    wg.set_default_device(None)


@pytest.mark.parametrize("before", [True, False])
def test_a_script_is_recorded(
    before: bool, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["-o", str(tmp_path / "my.zip")]
    arguments = [*(output if before else ()), "--device", "webgpu:0", str(script), "2", "--more"]
    assert main(["record", *arguments, *(() if before else output)]) == 3  # the script's own exit code
    shown = capsys.readouterr()
    assert shown.out == "['2', '--more'] [3.0, 3.0, 3.0, 3.0]\n"
    assert "1 dispatches, 1 distinct" in shown.err
    with RecordingReader(tmp_path / "my.zip") as recording:
        (dispatch,) = recording.dispatches
    assert dispatch.line == f"{script}:4"


def test_a_script_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "nowhere.py"]) == 2
    assert "there is no script nowhere.py" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


NOWHERE = "import webgrad as wg\nprint((wg.ones(4, device='cpu') + 1).tolist())\n"


def test_without_a_device_the_best_adapter_is_taken(script: Path, tmp_path: Path) -> None:
    wg.set_default_device("cpu")
    assert main(["record", "-o", str(tmp_path / "my.zip"), str(script), "2"]) == 3
    with RecordingReader(tmp_path / "my.zip") as recording:
        assert len(recording.dispatches) == 1


def test_the_cpu_and_a_script_that_uses_it(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["-o", str(tmp_path / "my.zip")]
    assert main(["record", *output, "--device", "cpu", str(script), "2"]) == 2
    assert "kernels are recorded on GPUs only" in capsys.readouterr().err
    assert list(tmp_path.glob("*.zip")) == []
    script.write_text(NOWHERE)
    assert main(["record", *output, str(script)]) == 2
    assert main(["replay", output[1]]) == 2
    assert "the recording is empty: nothing was run" in capsys.readouterr().err


def test_what_portable_leaves_out_is_told(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("import numpy as np, webgrad as wg\nwg.asarray(np.arange(4, dtype=np.int64))\n")
    arguments = ["-o", str(tmp_path / "my.zip"), "--portable", "--device", "webgpu:0", str(script)]
    assert main(["record", *arguments]) == 1
    shown = capsys.readouterr().err
    assert "has no int64" in shown
    assert "--portable leaves out int64" in shown
