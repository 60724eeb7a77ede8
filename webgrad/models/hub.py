"""Models of the Hugging Face hub, through the package huggingface_hub (extra `hub`).

In: an `hf:` source and a folder to work in. Out: the files under `files` there, all of one commit, with the
digests that the hub has for them. What has come of a file stays under `hub`, and the package goes on there.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import webgrad as wg

from .sources import Brought, Meter, Source, choose, is_safe, sizes_under

__all__ = ["bring_from_hub"]

_TICK = 0.1  # seconds between two looks at what has come
Answer = TypeVar("Answer")

_UNCONNECTED = (
    "there is no connection to it; pull again when there is, and what has come is not fetched twice"
)

# Errors by the names of their classes, which versions of the packages have in several modules. The first that
# an error is or derives from counts.
_MEANINGS = {
    "RevisionNotFoundError": "there is no such branch, tag or commit in it",
    "GatedRepoError": "its licence has to be accepted on the model's page first, and then `hf auth login`",
    "RepositoryNotFoundError": "there is no such repository, or it is private: then `hf auth login`",
    "OfflineModeIsEnabled": "HF_HUB_OFFLINE says that there is no connection",
    "LocalEntryNotFoundError": _UNCONNECTED,
    "EntryNotFoundError": "there is no such file in it",
    "ConnectionError": _UNCONNECTED,
    "TransportError": _UNCONNECTED,
    "Timeout": _UNCONNECTED,
}


def bring_from_hub(source: Source, workspace: Path, label: str, show: bool) -> Brought:
    """Fetch the files of a model from a repository of the hub."""
    hub = _package(label)
    revision = source.version or None
    info = _asked(label, lambda: hub.HfApi().model_info(source.name, revision=revision, files_metadata=True))
    files = {each.rfilename: each for each in info.siblings or ()}
    choice = choose(files, source)
    if unsafe := [path for path in choice.names if not is_safe(path)]:
        raise wg.ModelFileError(f"{label}: {unsafe[0]!r} is not a path in a repository; it is not used")
    place = workspace / "hub"
    meter = Meter(label, sum(files[path].size or 0 for path in choice.names), show)
    with _quiet(hub), _watched(place, meter):
        for path in choice.names:
            fetch = functools.partial(hub.hf_hub_download, source.name, path, revision=info.sha)
            _asked(label, functools.partial(fetch, local_dir=place))
    for path, name in choice.names.items():
        target = workspace / "files" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (place / path).replace(target)
    return Brought(choice.main, {name: _digest(files[path]) for path, name in choice.names.items()})


def _package(label: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise wg.ModelFileError(
            f'{label}: models of the hub come through the package huggingface_hub: pip install "webgrad[hub]"'
        ) from None
    return huggingface_hub


def _asked(label: str, ask: Callable[[], Answer]) -> Answer:
    """What the hub answers; its errors, and those of the network under it, in one sentence."""
    try:
        return ask()
    except Exception as error:  # they come from several packages, which are not ours to list
        names = [each.__name__ for each in type(error).__mro__]
        meaning = next((text for name, text in _MEANINGS.items() if name in names), "")
        if not meaning and isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise wg.ModelFileError(f"{label}: the hub did not give it: {meaning or first}") from None


def _digest(file: Any) -> str:
    """What the hub knows of a file: the sha256 of large ones, git's own sum of others."""
    if file.lfs:
        return f"sha256:{file.lfs['sha256'] if isinstance(file.lfs, dict) else file.lfs.sha256}"
    return f"git:{file.blob_id}" if file.blob_id else ""


@contextmanager
def _quiet(hub: Any) -> Iterator[None]:
    """Without the package's own bars, since there is ours."""
    was_off = hub.utils.are_progress_bars_disabled()
    hub.utils.disable_progress_bars()
    try:
        yield
    finally:
        if not was_off:
            hub.utils.enable_progress_bars()


@contextmanager
def _watched(folder: Path, meter: Meter) -> Iterator[None]:
    """Feed a meter with what lies in a folder, meanwhile."""
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(_TICK):
            meter.at(sum(sizes_under(folder)))

    thread = threading.Thread(target=look, name="webgrad-meter", daemon=True)
    thread.start()
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        is_over.set()
        thread.join()
        meter.close(is_whole=is_whole)
