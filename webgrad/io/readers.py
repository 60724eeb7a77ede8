"""Opening files of weights: which reader a path is for, and what is not read at all.

In: a path to a file or a folder. Out: `Weights`. Which format it is, its name says, or else its first bytes.
Of pickles only those of torch.save are read, by a machine that executes nothing; others are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array
from ..runtime.shield import shield
from .gguf import MAGIC as GGUF_MAGIC
from .gguf import part_names, read_gguf
from .memory_map import head_of
from .numpy_files import MAGIC as NUMPY_MAGIC
from .numpy_files import read_npy, read_npz
from .quantised_rows import Blocks
from .safetensors_files import INDEX, read_folder, read_index, read_safetensors
from .tfjs_files import NAME as TFJS
from .tfjs_files import read_tfjs
from .torch_files import is_of_torch, read_pt
from .weights import Contents, Weights

__all__ = ["PICKLED", "load", "load_metadata", "open"]

Reader = Callable[[Path], Contents]
READERS: dict[str, Reader] = {
    ".gguf": read_gguf,
    ".safetensors": read_safetensors,
    ".npz": read_npz,
    ".npy": read_npy,
    ".json": read_tfjs,
}
TORCH = (".pt", ".pth", ".bin", ".ckpt")  # which others than torch use, too: their first bytes say
PICKLED = (*TORCH, ".pkl", ".pickle", ".joblib")
_ZIP = b"PK\x03\x04"
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))


def open(path: str | os.PathLike[str]) -> Weights:
    """A file of weights (.gguf, .safetensors, .npz, .npy, .pt), or a folder of safetensors, as a mapping.

    So is the model.json of TensorFlow.js, or its folder.

    Tensors are read when they are asked for. See `Weights`.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-open.npz"
    >>> np.savez(path, bias=np.zeros(3, np.float16))
    >>> wg.io.open(path)["bias"]
    tensor([0., 0., 0.], dtype=float16, device=cpu)
    """
    target = Path(path)
    return Weights(target, _reader(target)(target))


def load(path: str | os.PathLike[str], device: Any = None) -> dict[str, Any]:
    """All tensors of a file, or of a folder of safetensors, by their names, copied to a device.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-load.safetensors"
    >>> wg.io.save(path, {"weight": wg.ones(3)})
    >>> wg.io.load(path)["weight"].tolist()
    [1.0, 1.0, 1.0]
    """
    with open(path) as weights:
        return {name: _copied(weights.host(name), device) for name in weights}


def _copied(host: Array | Blocks, device: Any) -> wg.Tensor | wg.QuantisedTensor:
    return host.tensor(device) if isinstance(host, Blocks) else wg.asarray(host, device=device)


def load_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What is beside the tensors of a file; the tensors are not read.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-metadata.safetensors"
    >>> wg.io.save(path, {"weight": wg.ones(3)}, {"licence": "CC0"})
    >>> wg.io.load_metadata(path)
    {'licence': 'CC0'}
    """
    with open(path) as weights:
        return dict(weights.metadata)


def _reader(path: Path) -> Reader:
    with shield:  # a handler's TimeoutError is an OSError, which isdir would take for a no
        is_folder = os.path.isdir(path)  # noqa: PTH112  (the method raises where a name is too long)
    if is_folder:
        return _reader_of_folder(path)
    if path.name.endswith(INDEX):
        return read_index
    by_name = READERS.get(path.suffix.lower())
    head = head_of(path, 16)
    if is_of_torch(path, head):
        return read_pt
    is_pickle = head.startswith(_PICKLE) and not _is_like_safetensors(head)
    if is_pickle or path.suffix.lower() in PICKLED[len(TORCH) :]:
        raise _refusal(path)
    found = by_name or _by_first_bytes(head)
    if found is None:
        names = ", ".join((*READERS, *TORCH))
        raise wg.ModelFileError(f"{path} is none of the files that webgrad reads, whose names end in {names}")
    return found


def _reader_of_folder(path: Path) -> Reader:
    """Of a folder: its safetensors, its only .gguf file, or its model.json."""
    with shield:
        try:
            names = sorted(os.listdir(path))  # noqa: PTH208
        except OSError as error:
            raise wg.ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None
    if any(name.endswith((".safetensors", INDEX)) for name in names):
        return read_folder
    models = [name for name in names if name.endswith(".gguf")]
    if len(models) == 1 or (models and models == part_names(models[0])):
        return lambda folder: read_gguf(folder / models[0])
    if models:
        raise wg.ModelFileError(f"{path} has several .gguf files: give one of them, {', '.join(models[:8])}")
    if TFJS in names:
        return lambda folder: read_tfjs(folder / TFJS)
    pickled = [name for name in names if name.endswith(TORCH)]
    if pickled:
        raise wg.ModelFileError(
            f"{path} has no .safetensors: give one of its files, {', '.join(pickled[:8])}"
        )
    raise wg.ModelFileError(f"{path} is a folder without .safetensors or .gguf files")


def _by_first_bytes(head: bytes) -> Reader | None:
    for magic, reader in ((GGUF_MAGIC, read_gguf), (NUMPY_MAGIC, read_npy), (_ZIP, read_npz)):
        if head.startswith(magic):
            return reader
    return read_safetensors if _is_like_safetensors(head) else None


def _is_like_safetensors(head: bytes) -> bool:
    """Whether eight bytes of length, under four thousand million, and an object follow each other."""
    return head[4:9] == b"\0\0\0\0{"


def _refusal(path: Path) -> wg.ModelFileError:
    return wg.ModelFileError(
        f"{path} is a pickle, or named like one, which can hold code: webgrad reads those that torch.save "
        "writes, as far as they hold tensors and plain values, and no others"
    )
