"""Samples as a batch: tensors stacked, in tuples, lists and dicts as the samples have them.

In: a list of samples of one structure. Out: the structure once, with a batch where each sample had a value.
Values that are on the host already are copied together once; others are stacked by the device.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

import webgrad as wg

from .... import creation, shaping
from ....tensor import Array, adopt

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

Rows = dict[Any, Callable[..., Any]]


def collate(batch: Any, *, collate_fn_map: Rows | None = None) -> Any:
    """A batch by a table of types and what makes a batch of values of each: `f(batch, collate_fn_map=table)`.

    >>> import webgrad.torch as torch
    >>> torch.utils.data._utils.collate.collate([{"a": 1}, {"a": 2}], collate_fn_map={int: lambda x, **_: x})
    {'a': [1, 2]}
    """
    rows = collate_fn_map or {}
    first = batch[0]
    make = rows.get(type(first)) or next((rows[each] for each in rows if isinstance(first, each)), None)
    if make is not None:
        return make(batch, collate_fn_map=rows)
    if isinstance(first, Mapping):
        return _like(
            first, {key: collate([each[key] for each in batch], collate_fn_map=rows) for key in first}
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = zip(*batch, strict=True)
        return type(first)(*(collate(column, collate_fn_map=rows) for column in columns))
    if isinstance(first, Sequence):
        if any(len(each) != len(first) for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(column, collate_fn_map=rows) for column in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _like(first, parts)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )


def default_collate(batch: Any) -> Any:
    """A batch of samples: tensors and arrays stacked, numbers as tensors, texts as a list.

    >>> import webgrad.torch as torch
    >>> torch.utils.data.default_collate([(torch.ones(2), 0), (torch.zeros(2), 1)])[1].tolist()
    [0, 1]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """NumPy arrays as tensors, in tuples, lists and dicts too; anything else as it is.

    >>> import numpy as np, webgrad.torch as torch
    >>> torch.utils.data.default_convert({"x": np.ones(2), "name": "a"})["x"].shape
    torch.Size([2])
    """
    if isinstance(data, Array | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else creation.functions["as_tensor"](data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(each) for each in data))
    if isinstance(data, Sequence):
        parts = [default_convert(each) for each in data]
        return parts if isinstance(data, tuple) else _like(data, parts)
    return data


def _like(first: Any, parts: Any) -> Any:
    """Parts in a container of the first one's type, with its other attributes where it can be copied."""
    made: Any
    try:
        if isinstance(first, MutableMapping):
            made = copy.copy(first)
            made.update(parts)
            return made
        if isinstance(first, MutableSequence) and type(first) is not list:
            made = copy.copy(first)
            for at, each in enumerate(parts):
                made[at] = each
            return made
        return parts if type(first) in (list, dict) else type(first)(parts)
    except TypeError:  # of a type that is not made from its parts
        return parts


def _tensors(batch: Sequence[Any], *, collate_fn_map: Rows | None = None) -> Any:
    first = batch[0]
    if first.device.name != "cpu" or any(each.requires_grad for each in batch):
        return shaping.functions["stack"](list(batch))
    arrays = [each.numpy() for each in batch]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if any(each.shape != shape for each in arrays):
        other = next(each.shape for each in arrays if each.shape != shape)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(other)} "
            "in another: pad them in the dataset, or give the DataLoader a collate_fn"
        )
    if any(each.dtype != dtype for each in arrays):
        return shaping.functions["stack"](list(batch))
    stacked = np.concatenate(arrays).reshape(len(arrays), *shape) if shape else np.array(arrays, dtype)
    return adopt(wg.asarray(stacked, device="cpu", copy=False))


def _arrays(batch: Sequence[Any], *, collate_fn_map: Rows | None = None) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
            f"{batch[0].dtype}"
        )
    return _tensors([creation.functions["as_tensor"](each, device="cpu") for each in batch])


def _numbers(batch: Sequence[Any], *, collate_fn_map: Rows | None = None) -> Any:
    return creation.tensor(list(batch))


def _floats(batch: Sequence[Any], *, collate_fn_map: Rows | None = None) -> Any:
    return creation.tensor(list(batch), dtype=wg.float64, device="cpu")


def _texts(batch: Sequence[Any], *, collate_fn_map: Rows | None = None) -> Any:
    return batch


default_collate_fn_map: Rows = {
    Array: _tensors,
    np.ndarray: _arrays,
    (np.bool_, np.number): _arrays,
    float: _floats,
    int: _numbers,
    str: _texts,
    bytes: _texts,
}
