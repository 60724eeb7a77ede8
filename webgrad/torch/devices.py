"""torch.device, and the names of devices in torch's programs: "cuda" is the best device there is.

In: "cpu", "cuda:0", "mps", "webgpu:0", an index. Out: a device that compares, prints and has `type` and
`index` as torch's has, and webgrad's own device as `place`. Where there is no GPU, "cuda" is the cpu;
programs that ask `torch.cuda.is_available()` first do not name it there.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

__all__ = ["device", "get_default_device", "has_gpu", "place", "set_default_device"]

_ACCELERATORS = ("cuda", "mps", "xpu", "hip", "webgpu", "gpu")


def has_gpu() -> bool:
    """Whether the default device is a GPU."""
    return bool(wg.default_device().is_gpu)


class device:
    """Where tensors are: `device("cpu")`, `device("cuda")`, `device("cuda", 0)`, `device("webgpu:0")`.

    >>> import webgrad.torch as torch
    >>> torch.device("cpu").type, torch.device("cpu") == torch.zeros(2).device
    ('cpu', True)
    """

    __slots__ = ("index", "place", "type")
    type: str
    index: int | None
    place: Any

    def __init__(self, type: Any = "cpu", index: Any = None) -> None:
        if isinstance(type, device):
            self.type, self.index, self.place = type.type, type.index, type.place
            return
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            self.place = wg.open_device(type)
            self.type, self.index = _parts(self.place.name)
            return
        kind, given = _parts(type)
        if kind not in (*_ACCELERATORS, "cpu", "meta"):
            raise RuntimeError(
                f"{type!r} is no device: there are 'cpu', 'cuda' (the best device), and {_names()}"
            )
        self.type, self.index = kind, index if index is not None else given
        self.place = self._found()

    def _found(self) -> Any:
        if self.type == "meta":
            raise RuntimeError(
                "device 'meta' holds no values: make tensors on 'cpu', where nothing is allocated until "
                "a value is needed"
            )
        if self.type == "cpu":
            return wg.open_device("cpu")
        if self.type == "webgpu":
            return wg.open_device(f"webgpu:{self.index or 0}")
        best = wg.default_device()
        if self.index and best.is_gpu:
            return wg.open_device(f"webgpu:{self.index}")
        return best

    def __eq__(self, other: object) -> bool:
        if isinstance(other, device):
            return bool(self.place is other.place)
        if isinstance(other, str):
            known = _parts(other)[0] in (*_ACCELERATORS, "cpu")
            return known and self == device(other)
        return self.place is other

    def __hash__(self) -> int:
        return hash(self.place)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        where = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{where})"

    def __enter__(self) -> device:
        _before.append(wg.default_device())
        wg.set_default_device(self.place)
        return self

    def __exit__(self, *error: object) -> None:
        wg.set_default_device(_before.pop())


_before: list[Any] = []


def _parts(name: str) -> tuple[str, int | None]:
    kind, _, index = name.partition(":")
    return kind, int(index) if index.isdigit() else None


def _names() -> str:
    return ", ".join(each.device for each in wg.devices())


def place(where: Any) -> Any:
    """A device as webgrad takes it: from torch.device, a name of torch's or webgrad's, an index, or None."""
    if isinstance(where, str | int):
        where = device(where)
    return getattr(where, "place", where)


def get_default_device() -> device:
    """The device on which tensors are made where none is given."""
    return device(wg.default_device())


def set_default_device(where: Any) -> None:
    """Make tensors on another device where none is given."""
    wg.set_default_device(place(where))
