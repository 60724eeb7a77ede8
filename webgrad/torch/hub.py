"""torch.hub: weights that are on this machine already; nothing is downloaded, and no program is fetched.

In: addresses, as programs have them. Out: what lies under the last part of one in torch's folder of weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlparse

from .serialization import load as load_file

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]

_folder = {"hub": Path("~/.cache/torch/hub")}


def get_dir() -> str:
    """The folder of what torch.hub keeps."""
    return str(_folder["hub"].expanduser())


def set_dir(d: Any) -> None:
    """Look for weights in another folder."""
    _folder["hub"] = Path(d)


def load_state_dict_from_url(
    url: str,
    model_dir: Any = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """The weights of an address, from where torch keeps them once they are downloaded."""
    folder = Path(get_dir()) / "checkpoints" if model_dir is None else Path(model_dir)
    path = folder / (file_name or Path(unquote(urlparse(url).path)).name)
    if not path.is_file():
        raise RuntimeError(
            f"torch.hub: webgrad.torch downloads nothing, and there is no {path}: download {url} to it "
            "(after looking at who offers it) and call it again"
        )
    return load_file(path, map_location)


def load(repo_or_dir: Any, model: Any, *args: Any, **options: Any) -> NoReturn:
    """Refused: it would fetch a program and run it."""
    raise RuntimeError(
        f"torch.hub.load would fetch the program of {repo_or_dir} and run it: get it, import its model, and "
        "load the weights by load_state_dict"
    )


def download_url_to_file(url: str, dst: Any, *args: Any, **options: Any) -> NoReturn:
    """Refused: nothing is downloaded."""
    raise RuntimeError(f"torch.hub: webgrad.torch downloads nothing: download {url} to {dst}")
