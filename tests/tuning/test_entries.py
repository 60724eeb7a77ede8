"""What was measured, on disk: kept whole or not at all, never trusted where it is damaged or another's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.limits import HANG
from webgrad import config
from webgrad.lower.choices import Choice
from webgrad.tuning import entries as module
from webgrad.tuning.entries import Candidate, Entries, Entry, entries_folder

ROOT = Path(__file__).parents[2]
KEY: dict[str, Any] = {
    "kind": "rows",
    "kernel": "rows_sum",
    "shapes": [[4, 8], [4]],
    "dtypes": ["float32", "float32"],
    "driver": "Mesa 25.0.7",
    "webgrad": "0.1.0",
}
SLOW: Choice = (("threads", 1), ("rows", 4))
QUICK: Choice = (("threads", 64), ("rows", 1))
WRONG: Choice = (("threads", 7), ("rows", 1))
ENTRY = Entry(
    KEY,
    (Candidate(SLOW, 2e-3), Candidate(QUICK, 5e-4), Candidate(WRONG, None, "its results are not right")),
    QUICK,
)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_an_entry_is_found_again_by_another_process(tmp_path: Path) -> None:
    assert Entries(tmp_path).find(KEY) is None
    Entries(tmp_path).keep(ENTRY)
    found = Entries(tmp_path).find(KEY)
    assert found == ENTRY
    assert found is not None
    assert found.gain == pytest.approx(4)


def test_memory_comes_before_the_disk(tmp_path: Path) -> None:
    entries = Entries(tmp_path)
    entries.keep(ENTRY)
    only_file(tmp_path).unlink()
    assert entries.find(KEY) is ENTRY


def test_without_a_folder_there_is_memory(tmp_path: Path) -> None:
    entries = Entries(None)
    entries.keep(ENTRY)
    assert entries.find(KEY) is ENTRY
    assert list(entries) == []
    assert entries.clear() == 0
    assert entries.find(KEY) is None


def test_memory_has_a_limit() -> None:
    entries = Entries(None, limit=2)
    for number in range(3):
        entries.keep(Entry(KEY | {"number": number}, ENTRY.candidates, QUICK))
    assert [entries.find(KEY | {"number": number}) is not None for number in range(3)] == [False, False, True]


def test_a_file_can_be_read_by_people(tmp_path: Path) -> None:
    Entries(tmp_path).keep(ENTRY)
    path = only_file(tmp_path)
    assert path.name.startswith("rows-")
    assert json.loads(path.read_text("utf-8")) == {
        "format": 1,
        "winner": {"threads": 64, "rows": 1},
        "gain": 4.0,
        "candidates": [
            {"choice": {"threads": 1, "rows": 4}, "microseconds": 2000.0},
            {"choice": {"threads": 64, "rows": 1}, "microseconds": 500.0},
            {"choice": {"threads": 7, "rows": 1}, "dropped": "its results are not right"},
        ],
        "key": KEY,
    }


@pytest.mark.parametrize("changed", [{"driver": "Mesa 26"}, {"webgrad": "0.2.0"}, {"shapes": [[4, 9], [4]]}])
def test_another_key_is_another_entry(changed: dict[str, Any], tmp_path: Path) -> None:
    entries = Entries(tmp_path)
    entries.keep(ENTRY)
    assert entries.find(KEY | changed) is None
    entries.keep(Entry(KEY | changed, ENTRY.candidates, SLOW))
    assert len(list(tmp_path.iterdir())) == 2
    assert Entries(tmp_path).find(KEY) == ENTRY


def damaged(text: str) -> dict[str, str | bytes]:
    """Ways in which a file can be no entry of this key."""
    table = json.loads(text)
    without_time = [each for each in table["candidates"] if each["choice"] != table["winner"]]
    return {
        "empty": "",
        "half": text[: len(text) // 2],
        "no text": b"\xff\xfe\x00",
        "a list": "[]",
        "a number": "3",
        "deep": "[" * 100_000,
        "no winner": json.dumps({name: value for name, value in table.items() if name != "winner"}),
        "another winner": json.dumps(table | {"winner": {"threads": 3}}),
        "a winner without a time": json.dumps(table | {"candidates": without_time}),
        "a dropped winner": json.dumps(table | {"winner": {"threads": 7, "rows": 1}}),
        "choices of text": json.dumps(table | {"winner": {"threads": "64", "rows": 1}}),
        "candidates of numbers": json.dumps(table | {"candidates": [1, 2]}),
        "a newer format": json.dumps(table | {"format": 2}),
        "another key": json.dumps(table | {"key": KEY | {"driver": "Mesa 26"}}),
        "no key": json.dumps(table | {"key": None}),
    }


def text_of_entry(folder: Path) -> str:
    Entries(folder).keep(ENTRY)
    return only_file(folder).read_text("utf-8")


def test_a_damaged_or_foreign_file_is_a_miss_and_is_overwritten(tmp_path: Path) -> None:
    for name, content in damaged(text_of_entry(tmp_path)).items():
        path = only_file(tmp_path)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        entries = Entries(tmp_path)
        assert entries.find(KEY) is None, name
        entries.keep(ENTRY)
        assert Entries(tmp_path).find(KEY) == ENTRY, name


def test_a_folder_in_a_files_place_is_a_miss(tmp_path: Path) -> None:
    text_of_entry(tmp_path)
    path = only_file(tmp_path)
    path.unlink()
    path.mkdir()
    entries = Entries(tmp_path)
    assert entries.find(KEY) is None
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        entries.keep(ENTRY)
    assert entries.find(KEY) == ENTRY


def test_no_half_file_is_ever_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    write = Path.write_text

    def watched(path: Path, text: str, **options: Any) -> int:
        seen.append([each.name for each in Path(path.parent).glob("*.json")])
        assert not path.name.endswith(".json")
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", watched)
    Entries(tmp_path).keep(ENTRY)
    assert seen == [[]]
    assert only_file(tmp_path).name.endswith(".json")


def test_what_fails_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    text_of_entry(tmp_path)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        Entries(tmp_path).keep(Entry(KEY, ENTRY.candidates, SLOW))
    assert Entries(tmp_path).find(KEY) == ENTRY
    only_file(tmp_path)


WRITER = """
import sys
from pathlib import Path
from tests.tuning.test_entries import ENTRY, KEY, SLOW, QUICK
from webgrad.tuning.entries import Entries, Entry
folder, winner = Path(sys.argv[1]), {"slow": SLOW, "quick": QUICK}[sys.argv[2]]
for _ in range(100):
    entries = Entries(folder)
    found = entries.find(KEY)
    assert found is None or found.winner in (SLOW, QUICK)
    entries.keep(Entry(KEY, ENTRY.candidates, winner))
    assert Entries(folder).find(KEY) is not None
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", WRITER, str(tmp_path / "deep" / "tuning")]
    running = [
        subprocess.Popen([*command, which], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for which in ("slow", "quick")
    ]
    assert [(each.communicate(timeout=HANG)[1], each.returncode) for each in running] == [("", 0)] * 2
    assert len(list((tmp_path / "deep" / "tuning").iterdir())) == 1


def unwritable(tmp_path: Path, how: str) -> Path:
    """A folder in which nothing can be made."""
    if how == "read-only":
        if os.name == "nt" or os.geteuid() == 0:
            pytest.skip("for this user nothing is read-only")
        tmp_path.chmod(0o500)
        return tmp_path / "tuning"
    (tmp_path / "file").write_text("", "utf-8")
    return tmp_path / "file" / "tuning"


@pytest.mark.parametrize("how", ["read-only", "below a file"])
def test_where_nothing_can_be_written_there_is_memory_and_one_warning(how: str, tmp_path: Path) -> None:
    entries = Entries(unwritable(tmp_path, how))
    with pytest.warns(RuntimeWarning, match=r"cannot be kept in .*tuning.*WEBGRAD_CACHE"):
        entries.keep(ENTRY)
    entries.keep(Entry(KEY | {"driver": "other"}, ENTRY.candidates, SLOW))  # says nothing more
    assert entries.find(KEY) is ENTRY
    assert entries.clear() == 0


def test_a_file_that_another_process_reads_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, target: Path) -> Path:
        raise PermissionError(13, "Access is denied")

    text_of_entry(tmp_path)
    monkeypatch.setattr(Path, "replace", refused)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Entries(tmp_path).keep(ENTRY)
    only_file(tmp_path)


def test_clearing(tmp_path: Path) -> None:
    entries = Entries(tmp_path)
    entries.keep(ENTRY)
    (tmp_path / "rows-0.json").write_text("damaged", "utf-8")
    (tmp_path / "README").write_text("not ours", "utf-8")
    assert [entry for _, entry in entries] == [None, ENTRY]
    assert entries.clear() == 2
    assert entries.find(KEY) is None
    assert only_file(tmp_path).name == "README"


def test_the_folder_is_the_settings_or_the_systems(
    clean_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean_environment.setattr(module, "cache_path", lambda: Path("system"))
    assert entries_folder() == Path("system/tuning")
    clean_environment.setattr(module, "cache_path", lambda: None)
    assert entries_folder() is None
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    config.reload()
    assert entries_folder() == tmp_path / "tuning"
