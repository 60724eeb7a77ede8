"""The long runs' figures, and what counts as wrong: tried with parts that only print."""

from __future__ import annotations

from typing import Any

import pytest

from scripts import soak
from scripts.soak import Part, main


def saying(text: str, more: str = "") -> tuple[str, str]:
    return ("-c", f"print({text!r}); {more}")


SLEEP = ("-c", "import time; time.sleep(60)")
OK = "ok    memory after 10 steps                    0.1 %   target ≤ 1 %"
MISS = OK.replace("ok  ", "MISS")


@pytest.mark.parametrize(
    ("part", "code", "shown"),
    [
        (Part(saying(OK)), 0, "0.1 % (target ≤ 1 %)"),
        (Part(saying("7 passed")), 0, "7 passed"),
        (Part(saying(MISS, "raise SystemExit(1)")), 1, "MISS"),
        (Part(("-c", "import os; os.abort()")), 1, "it said nothing"),
        (Part(SLEEP), 0, "cut off: the time was over"),
        (Part(SLEEP, 0.5), 1, "it did not end when it should have"),
    ],
)
def test_a_part(part: Part, code: int, shown: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(soak, "LEAST", 0.5)
    monkeypatch.setitem(soak.PARTS, "dispatches", part)
    minutes = "0.02" if part.command == SLEEP else "1"
    assert main(["--minutes", minutes, "--only", "dispatches"]) == code
    assert shown in capsys.readouterr().out


def test_without_time_nothing_is_begun(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(soak.PARTS, "dispatches", Part(("-c", "raise SystemExit(1)")))
    assert main(["--minutes", "0", "--only", "dispatches"]) == 0
    assert "not begun: the time was over" in capsys.readouterr().out
