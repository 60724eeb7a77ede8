"""`webgrad doctor`: its text at any width, its JSON, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from webgrad.cli import main
from webgrad.tools import doctor
from webgrad.tools.doctor import Finding

FINE = Finding("matmul float32", "4 sizes right; 14.8\N{NO-BREAK SPACE}GFLOP/s", group="Results")
NOTE = Finding(
    "f16", "not offered", "note", "float16 works, unpacked by the kernels " * 4, group="What it is"
)
WRONG = Finding("softmax", "wrong: by 1.0e-01", "problem", "update the driver", {"error": 0.1}, "Results")


def play(monkeypatch: pytest.MonkeyPatch, *found: Finding) -> None:
    def examine(device: str) -> Iterator[Finding]:
        yield from found

    monkeypatch.setattr(doctor, "listed", lambda spec=None, *, every=False: (("webgpu:0",), []))
    monkeypatch.setattr(doctor, "examine", examine)


def test_all_is_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    play(monkeypatch, NOTE, FINE)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("webgpu:0\n\n  What it is\n  note     f16 ")
    assert "\n  Results\n  ok       matmul float32       4 sizes right; 14.8 GFLOP/s\n" in text
    assert "> float16 works" in text
    assert "webgpu:0: 1 ok, 1 note, no problem (" in text


@pytest.mark.parametrize("columns", [30, 59, 80, 200])
def test_lines_are_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    play(monkeypatch, FINE, NOTE, WRONG)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in "".join(lines)


def test_a_problem_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play(monkeypatch, FINE, WRONG)
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == 1
    assert set(report["versions"]) >= {"webgrad", "Python", "numpy", "wgpu", "system"}
    [device] = report["devices"]
    assert device["device"] == "webgpu:0"
    assert device["findings"][1]["verdict"] == "problem"
    assert device["findings"][1]["figures"] == {"error": 0.1}


WRONG_SOFTMAX = """
import webgrad as wg
right = wg.softmax
wg.softmax = lambda x, **options: right(x, **options) * 1.00001
table.PROBES = [each for each in table.PROBES if each.name in ("softmax", "sum")]
table.main(request)
"""


def test_a_wrong_result_of_a_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", doctor.PROGRAM.replace("table.main(request)", WRONG_SOFTMAX))
    monkeypatch.setattr(doctor, "listed", lambda spec=None, *, every=False: (("cpu",), []))
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor", "--device", "cpu"]) == 1
    text = capsys.readouterr().out
    assert "problem  softmax " in text
    assert "ok       sum " in text
    assert "cpu: 1 ok, 0 notes, 1 problem (" in text


def test_drivers_that_cannot_be_listed_leave_the_cpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play(monkeypatch, FINE)
    monkeypatch.setattr(doctor, "listed", lambda spec=None, *, every=False: (("cpu",), [WRONG]))
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [each["device"] for each in report["devices"]] == ["adapters", "cpu"]


def test_a_user_s_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", "--all", "--device", "cpu"])
    assert stopped.value.code == 2
    assert main(["doctor", "--device", "webgpu:99"]) == 2
    assert "webgrad doctor: webgpu:99 was asked for" in capsys.readouterr().err
