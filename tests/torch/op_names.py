"""Where torch's functions are in webgrad, and how their arguments are spelt.

In: the name of an OpInfo. Out: a function that takes torch's arguments, or None. Most have the same name, and
arguments that only differ in their names; the others are rows of ADAPTED.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

import webgrad as wg
import webgrad.nn.functional as F
from tests.torch.checking import torch
from tests.torch.samples import Refusal

__all__ = ["ABSENT_VALUES", "DIFFERENT", "INVARIANTS", "OTHER_MEANING", "ROUNDING", "THEIRS", "found"]

# torch's name of an argument → webgrad's: the first that the function has.
SPELLINGS = {
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
    "keepdim": ("keepdims",),
    "start_dim": ("start_axis",),
    "end_dim": ("end_axis",),
    "diagonal": ("k",),
    "end": ("stop",),
    "shifts": ("shift",),
    "p": ("ord",),
}


def spelt(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with torch's names of arguments."""
    has = inspect.signature(function).parameters

    def call(*args: Any, **kwargs: Any) -> Any:
        names = {
            key: next((new for new in SPELLINGS.get(key, ()) if key not in has and new in has), key)
            for key in kwargs
        }
        # None is what torch has for an argument that is not given.
        given = {names[key]: value for key, value in kwargs.items() if value is not None or names[key] in has}
        return function(*args, **given)

    return call


def refuse_unless(condition: bool, what: str) -> None:
    """Say that webgrad has no spelling for an argument."""
    if not condition:
        raise Refusal(what)


def deviation(function: Callable[..., Any]) -> Callable[..., Any]:
    """var and std: torch divides by n - 1 where nothing is said, webgrad by n."""

    def call(
        x: Any,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: Any = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        divisor = correction if correction is not None else 1 if unbiased in (None, True) else 0
        return function(x, axis=dim if dim != () else None, correction=divisor, keepdims=keepdim)

    return call


def extremum(values: Callable[..., Any], places: Callable[..., Any]) -> Callable[..., Any]:
    """The largest or smallest with its place."""
    return lambda x, dim, keepdim=False: (
        values(x, dim, keepdims=keepdim),
        places(x, dim, keepdims=keepdim),
    )


def cut(x: Any, sizes: Any, dim: int = 0) -> Any:
    """Pieces of so many elements."""
    if isinstance(sizes, int):
        return wg.split(x, list(range(sizes, x.shape[dim], sizes)), axis=dim)
    return wg.split(x, list(accumulate(sizes))[:-1], axis=dim)


def unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """Distinct elements; torch gives one tensor where nothing else is asked for."""
    refuse_unless(dim is None, "unique along an axis")
    found = wg.unique_all(x)
    parts = [found.values]
    parts += [found.inverse_indices] if return_inverse else []
    parts += [found.counts] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)


def corner(src: Any, index: Any) -> Any:
    """As much of the updates as there are indices."""
    return src[tuple(slice(0, side) for side in index.shape)] if isinstance(src, wg.Tensor) else src


def reduced_scatter(name: str) -> Callable[..., Any]:
    """scatter_reduce: webgrad has it with the elements that were there, under one name for each."""

    def call(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
        refuse_unless(include_self, "include_self=False")
        return getattr(wg, name)(x, index, corner(src, index), axis=dim)

    return call


def scatter(x: Any, dim: int, index: Any, src: Any = None, *, reduce: Any = None, value: Any = None) -> Any:
    """torch's scatter, which also adds."""
    refuse_unless(reduce in (None, "add"), f"reduce={reduce!r}")
    function = wg.scatter if reduce is None else wg.scatter_add
    return function(x, index, corner(src if src is not None else value, index), axis=dim)


def index_reduce(name: str) -> Callable[..., Any]:
    """index_reduce as index_max and index_min."""

    def call(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
        refuse_unless(include_self, "include_self=False")
        return getattr(wg, name)(x, index, src, axis=dim)

    return call


def index_add(x: Any, dim: int, index: Any, src: Any, *, alpha: Any = 1) -> Any:
    """Slices added, each times alpha."""
    return wg.index_add(x, index, src if alpha == 1 else src * alpha, axis=dim)


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """Places, as columns of a matrix unless a tuple is asked for."""
    places = wg.nonzero(x)
    return places if as_tuple else wg.stack(places, axis=1)


def searchsorted(
    edges: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Places in sorted numbers."""
    return wg.searchsorted(edges, values, side=side or ("right" if right else "left"), sorter=sorter)


def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """torch.norm: of vectors by p, of matrices by a name."""
    refuse_unless(dtype is None, "dtype")
    if p == "nuc":
        return wg.linalg.norm(x, "nuc", dim, keepdim)
    return wg.vector_norm(x, axis=dim, keepdims=keepdim, ord=2 if p in (None, "fro") else p)


def matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """Norms of matrices, which are the last two axes here."""
    refuse_unless(tuple(dim) == (-2, -1), "axes of matrices that are not the last two")
    return wg.linalg.matrix_norm(x, ord=ord, keepdims=keepdim)


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Norms of vectors."""
    refuse_unless(dtype is None, "dtype")
    return wg.vector_norm(x, axis=dim, keepdims=keepdim, ord=ord)


def ordered(x: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """Sorted values and their places."""
    return (
        wg.sort(x, dim, descending=descending, stable=stable),
        wg.argsort(x, dim, descending=descending, stable=stable),
    )


def tensor_split(x: Any, at: Any, dim: int = 0) -> Any:
    """Pieces by their number or by the places of the cuts, which may be tensors."""
    return wg.split(x, at.tolist() if isinstance(at, wg.Tensor) else at, axis=dim)


def svd_product(factors: Any) -> Any:
    u, s, vh = factors
    least = s.shape[-1]
    return s, (u[..., :, :least] * s[..., None, :]) @ vh[..., :least, :]


def eigh_product(factors: Any) -> Any:
    values, vectors = factors
    return values, (vectors * values[..., None, :]) @ vectors.mH


# Results that are determined up to signs, phases or the order of ties only: name → what all of them have in
# common, a function of the results of either library.
INVARIANTS: dict[str, Callable[..., Any]] = {
    "linalg.eigh": eigh_product,
    "linalg.lstsq": lambda result: result[0],
    "linalg.lstsq.grad_oriented": lambda result: result[0],
    "linalg.svd": svd_product,
    "topk": lambda result: result[0],  # the order of ties is not determined
}
# How torch is called, where its own way leaves something open, or takes what is only a hint.
THEIRS: dict[str, Callable[..., Any]] = {
    "argsort": lambda x, *args, **kwargs: torch.argsort(x, *args, **{**kwargs, "stable": True}),
    "linalg.cholesky": lambda x, upper=False: torch.linalg.cholesky(x + x.mH, upper=upper),
    "linalg.eigh": lambda x, UPLO="L": torch.linalg.eigh(x + x.mH),
    "linalg.eigvalsh": lambda x, UPLO="L": torch.linalg.eigvalsh(x + x.mH),
    "sort": lambda x, dim=-1, descending=False, stable=True: torch.sort(
        x, dim=dim, descending=descending, stable=True
    ),
}

ADAPTED: dict[str, Callable[..., Any]] = {
    "H": lambda x: x.H,
    "T": lambda x: x.T,
    "__rdiv__": lambda x, other: other / x,
    "argwhere": nonzero,
    "bitwise_not": wg.bitwise_invert,
    "broadcast_shapes": lambda *shapes: np.asarray(wg.broadcast_shapes(*shapes)),
    "broadcast_tensors": wg.broadcast_arrays,
    "clamp_max": lambda x, bound: wg.clip(x, None, bound),
    "clamp_min": lambda x, bound: wg.clip(x, bound, None),
    "conj_physical": wg.conj,
    "constant_pad_nd": lambda x, pad, value=0: F.pad(x, pad, value=value),
    "cummax": lambda x, dim: (wg.cummax(x, dim), None),
    "cummin": lambda x, dim: (wg.cummin(x, dim), None),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: wg.diagonal(x, offset, dim1, dim2),
    "diagonal_copy": lambda x, offset=0, dim1=0, dim2=1: wg.diagonal(x, offset, dim1, dim2),
    "div.floor_rounding": lambda x, other, rounding_mode: wg.floor_divide(x, other),
    "einsum": lambda operands, equation: wg.einsum(equation, *operands),
    "equal": wg.array_equal,
    "index_add": index_add,
    "index_copy": lambda x, dim, index, src: wg.index_set(x, index, src, axis=dim),
    "index_reduce.amax": index_reduce("index_max"),
    "index_reduce.amin": index_reduce("index_min"),
    "linalg.cholesky": lambda x, upper=False: wg.linalg.cholesky(x + x.mH, upper=upper),
    "linalg.diagonal": lambda x, offset=0, dim1=-2, dim2=-1: wg.diagonal(x, offset, dim1, dim2),
    "linalg.eigh": lambda x, UPLO="L": wg.linalg.eigh(x + x.mH),
    "linalg.eigvalsh": lambda x, UPLO="L": wg.linalg.eigvalsh(x + x.mH),
    "linalg.lstsq": lambda a, b, driver=None: wg.linalg.lstsq(a, b),
    "linalg.matrix_norm": matrix_norm,
    "linalg.pinv.singular": lambda a, b: wg.linalg.pinv(a @ b.mT),
    "linalg.vector_norm": vector_norm,
    "logsumexp": lambda x, dim, keepdim=False: wg.logsumexp(x, dim, keepdims=keepdim),
    "mH": lambda x: x.mH,
    "mT": lambda x: x.mT,
    "masked_select": lambda x, mask: wg.broadcast_arrays(x, mask)[0][wg.broadcast_arrays(x, mask)[1]],
    "max.binary": wg.maximum,
    "max.reduction_with_dim": extremum(wg.max, wg.argmax),
    "meshgrid.list_of_tensors": lambda each, indexing="ij": wg.meshgrid(*each, indexing=indexing),
    "meshgrid.variadic_tensors": lambda *each, indexing="ij": wg.meshgrid(*each, indexing=indexing),
    "min.binary": wg.minimum,
    "min.reduction_with_dim": extremum(wg.min, wg.argmin),
    "movedim": wg.moveaxis,
    "mv": wg.matmul,
    "nn.functional.embedding": lambda weight, index, **kwargs: F.embedding(index, weight, **kwargs),
    "nonzero": nonzero,
    "norm": norm,
    "norm.fro": norm,
    "norm.inf": norm,
    "norm.nuc": norm,
    "permute_copy": lambda x, axes: x.permute(axes),
    "ravel": lambda x: wg.reshape(x, -1),
    "repeat": lambda x, *times: wg.tile(x, *times),
    "repeat_interleave": lambda x, repeats, dim=None, output_size=None: wg.repeat_interleave(x, repeats, dim),
    "scatter": scatter,
    "scatter_add": lambda x, dim, index, src: wg.scatter_add(x, index, corner(src, index), axis=dim),
    "scatter_reduce.amax": reduced_scatter("scatter_max"),
    "scatter_reduce.amin": reduced_scatter("scatter_min"),
    "scatter_reduce.sum": reduced_scatter("scatter_add"),
    "searchsorted": searchsorted,
    "sgn": wg.sign,
    "sort": ordered,
    "split": cut,
    "split.list_args": cut,
    "split_with_sizes": cut,
    "squeeze_copy": wg.squeeze,
    "std": deviation(wg.std),
    "std.unbiased": deviation(wg.std),
    "t_copy": lambda x: x.t(),
    "take_along_dim": lambda x, index, dim=None: (
        wg.take_along_axis(x, index, dim)
        if dim is not None
        else wg.take_along_axis(wg.reshape(x, -1), wg.reshape(index, -1))
    ),
    "tensor_split": tensor_split,
    "tensordot": lambda a, b, dims=2: wg.tensordot(a, b, axes=dims),
    "trace": wg.linalg.trace,
    "transpose": wg.swapaxes,
    "transpose_copy": wg.swapaxes,
    "true_divide": wg.divide,
    "unique": unique,
    "unsafe_chunk": lambda x, chunks, dim=0: wg.chunk(x, chunks, dim),
    "unsafe_split": cut,
    "unsqueeze_copy": wg.unsqueeze,
    "var": deviation(wg.var),
    "var.unbiased": deviation(wg.var),
    "view_copy": lambda x, shape: x.view(shape),
    "where": lambda x, condition, other: wg.where(condition, x, other),
}

# What has random or unwritten values: shapes and dtypes are compared.
ABSENT_VALUES = frozenset(
    {
        "empty",
        "empty_like",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout.with_train",
    }
)

# The same name with another meaning: not the function that is looked for.
OTHER_MEANING = {
    "unfold": "webgrad's is nn.functional's; torch's method makes windows of one axis",
    "histogram": "webgrad's is NumPy's: counts are integers",
}

# Deliberate differences: what the line about a wrong value matches → why it is not torch's.
DIFFERENT: dict[str, str] = {
    r"^arange\(.*dtype=torch.int64\): shape": "as in NumPy, the length is that of the bounds before rounding",
    r"^bincount\(.*weights=int64.*dtype": "sums of integers are integers; nothing becomes float64 by itself",
    r"linalg.solve\(.*\[0, 0, 0\], .*shape": "as in the array API, only what has one axis is a vector",
    r"hardsigmoid\(float64.*gradient": "torch takes 1/6 in single precision, so its gradient is off by 3e-8",
}

# Where more rounding is allowed, as a factor: name → factor, and why.
ROUNDING: dict[str, tuple[float, str]] = {
    "nn.functional.scaled_dot_product_attention": (
        4.0,
        "gradients are made of the result as it is stored, in half precision, as flash attention's are",
    ),
}

SPACES = {"nn.functional": F, "linalg": wg.linalg, "fft": wg.fft}


def found(name: str, *others: str) -> Callable[..., Any] | None:
    """webgrad's function of a name, or of one of its other names, for torch's arguments."""
    for each in (name, *others):
        if each in ADAPTED:
            return spelt(ADAPTED[each])
    for each in (name, *others):
        if each in OTHER_MEANING:
            continue
        space, _, last = each.rpartition(".")
        home = wg if not space else SPACES.get(space)
        if home is not None and last in home.__all__ and callable(getattr(home, last)):
            return spelt(getattr(home, last))
        method = getattr(wg.Tensor, last, None) if not space else None
        if callable(method):
            return spelt(method)
    return None
