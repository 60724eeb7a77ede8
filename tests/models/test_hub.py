"""Models of the hub, with a small module in the place of huggingface_hub."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import webgrad as wg
from tests.models.packages import use_cache
from webgrad.models.hub import bring_from_hub
from webgrad.models.sources import Source

COMMIT = "c" * 40
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "1_Pooling/config.json": b"{ }",
    "pytorch_model.bin": b"pickle",
}


def git_sum(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sibling(path: str, data: bytes) -> SimpleNamespace:
    lfs = {"sha256": hashlib.sha256(data).hexdigest()} if path.endswith(".safetensors") else None
    return SimpleNamespace(rfilename=path, size=len(data), blob_id=git_sum(data), lfs=lfs)


class Hub:
    """What webgrad calls of huggingface_hub."""

    def __init__(self) -> None:
        self.files = dict(FILES)
        self.siblings = [sibling(path, data) for path, data in FILES.items()]
        self.fetched: list[str] = []
        self.revision: str | None = ""
        self.bars = True
        self.fail: Callable[[str], None] = lambda path: None
        self.utils = SimpleNamespace(
            are_progress_bars_disabled=lambda: not self.bars,
            disable_progress_bars=lambda: setattr(self, "bars", False),
            enable_progress_bars=lambda: setattr(self, "bars", True),
        )

    def HfApi(self) -> Hub:
        return self

    def model_info(self, name: str, revision: str | None, files_metadata: bool) -> SimpleNamespace:
        assert (name, files_metadata) == ("org/repo", True)
        self.revision = revision
        self.fail("")
        return SimpleNamespace(sha=COMMIT, siblings=self.siblings)

    def hf_hub_download(self, name: str, path: str, revision: str, local_dir: Path) -> None:
        assert (name, revision, self.bars) == ("org/repo", COMMIT, False)
        self.fail(path)
        self.fetched.append(path)
        (local_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (local_dir / path).write_bytes(self.files[path])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The module that `import huggingface_hub` gives."""
    found = Hub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", found)
    return found


@pytest.fixture
def models(tmp_path: Path, clean_environment: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    return use_cache(tmp_path / "cache", clean_environment)


def test_a_repository(hub: Hub, models: Path) -> None:
    path = wg.models.pull("hf:org/repo", progress=False)
    assert hub.fetched == ["model.safetensors", "config.json", "1_Pooling/config.json"]
    assert hub.bars
    assert path.parent == models
    assert (path / "1_Pooling" / "config.json").read_bytes() == b"{ }"
    assert wg.models.pull("hf:org/repo", progress=False) == path
    assert len(hub.fetched) == 3


@pytest.mark.usefixtures("models")
def test_one_file(hub: Hub) -> None:
    path = wg.models.pull("hf:org/repo/model.safetensors", progress=False)
    assert (path.name, path.read_bytes()) == ("model.safetensors", b"weights")
    assert hub.fetched == ["model.safetensors"]


@pytest.mark.usefixtures("models")
def test_all_spellings_of_a_model_are_one(hub: Hub) -> None:
    hub.files = {f"m-{kind}.gguf": kind.encode() for kind in ("Q4_K_M", "Q8_0")}
    hub.siblings = [sibling(path, data) for path, data in hub.files.items()]
    for name in ("hf:org/repo:Q8_0", "hf.co/org/repo:Q8_0", "https://huggingface.co/org/repo:Q8_0"):
        path = wg.models.pull(name, progress=False)
        assert (path.name, path.read_bytes()) == ("m-Q8_0.gguf", b"Q8_0")
    assert hub.fetched == ["m-Q8_0.gguf"]
    assert [each.name for each in wg.models.pulled()] == ["hf:org/repo:Q8_0"]
    assert wg.models.remove("https://huggingface.co/org/repo:Q8_0") > 0


@pytest.mark.usefixtures("models")
def test_a_revision(hub: Hub) -> None:
    wg.models.pull("https://huggingface.co/org/repo/blob/v2/model.safetensors", progress=False)
    assert hub.revision == "v2"
    wg.models.pull("hf:org/repo", progress=False)
    assert hub.revision is None


@pytest.mark.parametrize(("name", "kind"), [("model.safetensors", "sha256"), ("config.json", "git")])
def test_other_contents_than_the_hub_says(name: str, kind: str, hub: Hub, models: Path) -> None:
    hub.files[name] += b"!"
    with pytest.raises(
        wg.ModelFileError, match=rf"not the model: {name} has other contents \({kind} .* removed"
    ):
        wg.models.pull("hf:org/repo", progress=False)
    assert [path.suffix for path in (models / ".partial").iterdir()] == [".lock"]


def test_what_was_interrupted_goes_on_where_the_package_left_it(hub: Hub, models: Path) -> None:
    def stop(path: str) -> None:
        if path == "config.json":
            raise KeyboardInterrupt

    hub.fail = stop
    with pytest.raises(KeyboardInterrupt):
        wg.models.pull("hf:org/repo", progress=False)
    assert hub.bars
    [kept] = models.glob(".partial/*/hub/model.safetensors")
    assert kept.read_bytes() == b"weights"
    left = (
        kept.parent.parent / "files" / "other.safetensors"
    )  # of a pull that was killed, and another edition
    left.parent.mkdir()
    left.write_bytes(b"weights")
    hub.fail = lambda path: None
    found = wg.models.pull("hf:org/repo", progress=False)
    assert (found / "config.json").read_bytes() == b"{}"
    assert not (found / left.name).exists()


def test_a_path_that_leads_out(hub: Hub, tmp_path: Path) -> None:
    hub.siblings.append(sibling("../config.json", b"{}"))
    with pytest.raises(wg.ModelFileError, match="is not a path in a repository"):
        bring_from_hub(Source("hf", "org/repo", "", ""), tmp_path, "tiny", False)
    assert hub.fetched == []


def error_named(*names: str) -> Exception:
    kind: Any = OSError
    for name in reversed(names):
        kind = type(name, (kind,), {})
    found: Exception = kind("said the server\nand more")
    return found


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (error_named("GatedRepoError", "RepositoryNotFoundError"), "licence has to be accepted"),
        (error_named("RepositoryNotFoundError", "HfHubHTTPError"), "no such repository, or it is private"),
        (error_named("LocalEntryNotFoundError", "EntryNotFoundError"), "there is no connection"),
        (error_named("ConnectError", "TransportError"), "there is no connection"),
        (ConnectionRefusedError(111, "Connection refused"), "there is no connection"),
        (error_named("HfHubHTTPError"), "did not give it: said the server$"),
    ],
)
def test_errors_of_the_hub(error: Exception, expected: str, hub: Hub, tmp_path: Path) -> None:
    def fail(path: str) -> None:
        raise error

    hub.fail = fail
    with pytest.raises(wg.ModelFileError, match=expected):
        bring_from_hub(Source("hf", "org/repo", "", ""), tmp_path, "hf:org/repo", False)


@pytest.mark.usefixtures("models")
def test_a_full_disk(hub: Hub) -> None:
    def fail(path: str) -> None:
        if path:
            raise OSError(28, "No space left on device")

    hub.fail = fail
    with pytest.raises(wg.ModelFileError, match="No space left on device; make room, or name another folder"):
        wg.models.pull("hf:org/repo", progress=False)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(wg.ModelFileError, match=r'pip install "webgrad\[hub\]"'):
        bring_from_hub(Source("hf", "org/repo", "", ""), tmp_path, "tiny", False)
