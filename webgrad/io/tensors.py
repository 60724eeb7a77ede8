"""Writing tensors to files: safetensors, GGUF or NumPy's, as the file's name says.

In: a mapping of names to tensors or arrays, and what is to stand beside them. Out: a file, whole or not at
all; reading it gives the same tensors, bit by bit, where no other format was asked for.
"""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..runtime.shield import shield
from .gguf_writer import dtype_of, gguf_parts
from .quantised_rows import Blocks
from .replace import replacing
from .safetensors_files import HEADER, TENSORS

__all__ = ["check_writable", "save"]


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
) -> None:
    """Write named tensors to a .safetensors, .gguf, .npz or .npy file: whole, or not at all.

    `metadata` stands beside them: texts in safetensors; in GGUF texts, numbers, bools, and lists of these.
    `format`, for GGUF: what matrices of floats become, "F32", "F16", "BF16", "Q8_0", "Q4_0" or "Q4_1";
    other floats are F32 then. Quantised tensors stay as they are.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-example.safetensors"
    >>> wg.io.save(path, {"weight": wg.ones((2, 2))}, {"made by": "an example"})
    >>> wg.io.load(path)["weight"].tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    for given in (tensors, metadata or {}):
        if not isinstance(given, Mapping):
            raise wg.ArgumentError(f"io.save: tensors and metadata are dicts, not {type(given).__name__}")
    target = _checked(path, tuple(WRITERS))
    suffix = target.suffix.lower()
    if format is not None and suffix != ".gguf":
        raise wg.ArgumentError(f"io.save: format is for .gguf files, and {target.name} is none")
    if metadata and suffix in (".npz", ".npy"):
        raise wg.ArgumentError(f"io.save: {suffix} files have no place for metadata")
    write = WRITERS[suffix](tensors, metadata or {}, format)
    with replacing(target) as temporary:
        try:
            write(temporary)
        except OSError as error:
            if error.errno is None:  # not the system's, but a signal handler's
                raise
            raise wg.ModelFileError(f"{target} cannot be written: {error.strerror}") from None


def check_writable(path: str | os.PathLike[str], suffixes: Iterable[str] | None = None) -> None:
    """Raise where `save` could not write to this path: its suffix, its folder, permissions.

    >>> import tempfile
    >>> wg.io.check_writable(tempfile.gettempdir() + "/webgrad-example.safetensors")
    """
    with suppress(_NotMeant), replacing(_checked(path, tuple(suffixes or WRITERS))):
        raise _NotMeant


class _NotMeant(Exception):
    """Leaves a block of `replacing` without replacing."""


def _checked(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Path:
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise wg.ModelFileError(
            f"{target} cannot be written: the name must end in {' or '.join(suffixes)}; formats that can "
            "hold code (.pt, .pth, .bin, .pkl) are not written"
        )
    return target


# What writes: tensors, metadata and a format → a function that writes to a path. All checks come before it.

Write = Callable[[Path], None]


def _safetensors(tensors: Mapping[str, Any], metadata: Mapping[str, Any], _: str | None) -> Write:
    from safetensors import TensorSpec, serialize_file

    arrays = {_name(name): _array(name, value) for name, value in tensors.items()}
    for name, array in arrays.items():
        if array.dtype == wg.complex128.numpy:
            raise wg.DTypeError(f"io.save: {name} is complex128, which safetensors has not: save as .npz")
    texts = _texts(metadata)
    if len(arrays) > TENSORS or sum(len(text) for text in texts.values()) > HEADER // 2:
        raise wg.ArgumentError(
            f"io.save: {len(arrays):,} tensors and {sum(len(text) for text in texts.values()):,} characters "
            f"beside them are too much for one file, which holds {TENSORS:,} and {HEADER // 2:,}"
        )

    def write(path: Path) -> None:
        specifications = {  # addresses: `arrays` must live until they are written
            name: TensorSpec(
                dtype=each.dtype.name, shape=list(each.shape), data_ptr=each.ctypes.data, data_len=each.nbytes
            )
            for name, each in arrays.items()
        }
        with shield:  # it is one call, and what a signal's handler raises is not its error
            try:
                serialize_file(specifications, path, metadata=texts or None)
            except Exception as error:  # safetensors has one class of its own, and wraps the system's in it
                raise OSError(errno.EIO, str(error)) from None

    return write


def _gguf(tensors: Mapping[str, Any], metadata: Mapping[str, Any], format: str | None) -> Write:
    parts = gguf_parts(tensors, metadata, format)

    def write(path: Path) -> None:
        with path.open("wb") as file:
            for part in parts:
                file.write(part)

    return write


def _npz(tensors: Mapping[str, Any], _: Mapping[str, Any], __: str | None) -> Write:
    arrays = {_name(name): _plain_array(name, value) for name, value in tensors.items()}

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, each in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, each, allow_pickle=False)

    return write


def _npy(tensors: Mapping[str, Any], _: Mapping[str, Any], __: str | None) -> Write:
    if len(tensors) != 1:
        raise wg.ArgumentError(f"io.save: a .npy file has one array, not {len(tensors)}: save a .npz file")
    [array] = [_plain_array(name, value) for name, value in tensors.items()]

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.lib.format.write_array(file, array, allow_pickle=False)

    return write


WRITERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], str | None], Write]] = {
    ".safetensors": _safetensors,
    ".gguf": _gguf,
    ".npz": _npz,
    ".npy": _npy,
}


def _name(name: Any) -> str:
    if not isinstance(name, str) or name == "__metadata__" or "\0" in name or not _is_unicode(name):
        raise wg.ArgumentError(f"io.save: {name!r} cannot name a tensor")
    return name


def _is_unicode(text: str) -> bool:
    """Whether there is no half of a character in it, as surrogates are."""
    return text.encode(errors="replace").decode() == text


def _array(name: str, value: Any) -> Array:
    if isinstance(value, wg.QuantisedTensor | Blocks):
        raise wg.DTypeError(f"io.save: {name} is quantised, which .gguf files hold; or save its dequantise()")
    if not isinstance(value, wg.Tensor | np.ndarray | np.generic):
        raise wg.DTypeError(f"io.save: {name} is a {type(value).__name__}, not a tensor or a NumPy array")
    array = value.numpy() if isinstance(value, wg.Tensor) else np.asarray(value)
    own = dtype_of(name, array).numpy
    little = own.newbyteorder("<") if own.kind in "iufc" and own.name != "bfloat16" else own
    return np.ascontiguousarray(array.astype(little, copy=False)).reshape(array.shape)


def _plain_array(name: str, value: Any) -> Array:
    array = _array(name, value)
    if array.dtype == wg.bfloat16.numpy:
        raise wg.DTypeError(
            f"io.save: {name} is bfloat16, which NumPy's files have not: save as .safetensors"
        )
    return array


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise wg.ArgumentError(f"io.save: metadata is texts under texts, not {key!r}: {value!r}")
    return dict(metadata)
