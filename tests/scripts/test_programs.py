"""The list of public programs is complete, its files are checked, and records are compared."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import numpy as np
import pytest

from scripts import programs
from tests.programs import exceptions, sources
from tests.programs.steady import arrays


def test_every_file_has_a_hash_and_every_exception_a_reason() -> None:
    for source in sources.read_list().values():
        assert len(source.commit) == 40
        assert all(len(digest) == 64 for digest in source.files.values()), source.name
    assert all(len(reason) > 20 for reason in exceptions.REASONS.values())


@pytest.fixture
def mirror(tmp_path: Path) -> tuple[Path, str]:
    """A mirror with one repository of one file, and its commit."""
    git = tmp_path / "mirrors" / "one+two" / "repo"
    git.mkdir(parents=True)
    (git / "a.py").write_bytes(b"x = 1\n")
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"),
    ):
        subprocess.run(["git", *command], cwd=git, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=git, check=True, capture_output=True, text=True)
    return tmp_path / "mirrors", head.stdout.strip()


def test_files_come_from_a_mirror_and_are_checked(
    mirror: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, commit = mirror
    right = sources.Source("one/two", commit, {"a.py": hashlib.sha256(b"x = 1\n").hexdigest()})
    assert (sources.folder_of(right, folder) / "a.py").read_bytes() == b"x = 1\n"
    assert sources.folder_of(right) == sources.folder_of(right, folder)  # from the cache
    wrong = sources.Source("one/two", commit[:12], {"a.py": "0" * 64})
    with pytest.raises(ValueError, match=r"one/two a\.py: its SHA-256"):
        sources.folder_of(wrong, folder)


def record(*values: float) -> dict[str, np.ndarray]:
    """A record of one loss."""
    return {"loss.00000": np.array(values), "seconds": np.array([0.5, 0.25])}


def test_records_are_compared() -> None:
    assert programs.compare("x", record(1.0, 2.0), record(1.0, 2.0001)).agrees
    assert programs.compare("x", record(1.0, 2.0), record(1.0, 2.0)).first == 0.75
    assert not programs.compare("x", record(1.0), record(1.01)).agrees
    assert programs.compare("x", record(1000.0), record(1000.05)).agrees
    assert "NaN" in programs.compare("x", record(1.0), record(np.nan)).trouble
    assert "missing" in programs.compare("x", record(1.0), {}).trouble
    assert "with torch (1,)" in programs.compare("x", record(1.0), record(1.0, 2.0)).trouble


def test_arrays_of_a_nest_are_found_in_order() -> None:
    class Tensor:
        def __init__(self, value: float) -> None:
            self.value = value

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> np.ndarray:
            return np.array(self.value)

    class torch:
        pass

    torch.Tensor = Tensor  # type: ignore[attr-defined]
    nest = (Tensor(1), {"a": [Tensor(2), 3]}, None, Tensor(4))
    assert [float(each) for each in arrays(nest, torch)] == [1, 2, 4]
