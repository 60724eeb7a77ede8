"""What programs for other libraries write, and what is written here: one table.

In: nothing. Out: the rows that docs/porting-pytorch.md and docs/porting-numpy.md show, and the hints of
errors about names that webgrad does not have. Nothing here is loaded before such an error.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

__all__ = ["Row", "hint", "message", "refusing", "rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the tables."""

    source: str  # the library: torch or numpy
    scope: str  # where the names are looked for: wg, x (a tensor), nn, nn.functional, optim, random, io
    names: str  # which it has; none where the row is for readers only
    theirs: str  # as one writes it there; a star: each of the names by itself
    here: str


TABLE = """
torch wg:
    `x.sum(dim=1, keepdim=True)`, `x.size(0)`, `torch.zeros(2, 3)`
    the same; `axis`, `keepdims`, `x.shape` and `zeros((2, 3))` are webgrad's own words
torch wg: Generator
    `torch.Generator()`
    `wg.random.Generator(0)`
torch wg: FloatTensor LongTensor IntTensor BoolTensor
    `torch.FloatTensor(a)`, `torch.LongTensor(a)`
    `wg.tensor(a, dtype=wg.float32)`, `wg.tensor(a, dtype=wg.int64)`
torch wg: long
    `torch.long`
    `wg.int64`; on GPUs without 64 bits `wg.int32`
torch wg: float half double
    `torch.float`, `torch.half`, `torch.double`
    `wg.float32`, `wg.float16`, `wg.float64`
torch wg: int short
    `torch.int`, `torch.short`
    `wg.int32`, `wg.int16`
torch wg: dtype
    `torch.dtype`
    `wg.DType`
torch wg: device
    `torch.device("cuda")`
    `wg.open_device("webgpu")`, or its name, `device="webgpu"`; where there is a GPU it is the
    default already
torch x: cuda
    `x.cuda()`, `x.to("cuda")`
    `x.to("webgpu")`; where there is a GPU it is the default already
torch wg: cuda backends mps
    `torch.cuda.is_available()`, `torch.cuda.synchronize()`
    `wg.devices()`, `wg.synchronize()`
torch x: type
    `x.type(torch.float32)`
    `x.to(wg.float32)`, or `x.dtype` for its name
torch x: is_cuda
    `x.is_cuda`
    `x.device`, which has a `name`
torch wg:
    `torch.scatter(x, 1, i, y)`, `torch.index_add(x, 1, i, y)`
    `wg.scatter(x, i, y, 1)`, `wg.index_add(x, i, y, 1)`: the axis is the last
torch wg:
    `torch.max(x, y)`, `x.std(True)`
    `wg.maximum(x, y)`, `x.std(correction=1)`: the others are refused
torch x: put_
    `x.put_(i, u)`
    `x = wg.put(x, i, u)`: a new tensor
torch wg: compile
    `torch.compile(step)`
    `wg.jit(step)`, with `zero_grad`, `backward` and `step` inside
torch wg: autograd
    `torch.autograd.grad(y, x, create_graph=True)`
    `wg.grad_of(y, x, create_graph=True)`, or `wg.grad(f)(x)`
torch wg:
    `torch.autograd.Function`
    `wg.custom_gradient`
torch wg: vmap func jvp
    `torch.func.vmap`, `torch.func.jvp`
    `webgrad.torch.func`; or broadcasting, and `wg.value_and_grad`
torch wg: utils
    `torch.utils.data`, `torch.utils.checkpoint.checkpoint`
    `wg.data`, `wg.checkpoint`
torch wg: inference_mode
    `torch.inference_mode()`
    `wg.no_grad()`
torch wg: autocast
    `torch.autocast("cuda")`
    `wg.amp.autocast()`
torch wg: GradScaler
    `torch.amp.GradScaler()`
    `wg.amp.GradScaler()`
torch wg: save
    `torch.save(model.state_dict(), path)`
    `wg.io.save(path, model.state_dict())`, a `.safetensors` file
torch wg: load
    `torch.load(path)`
    `wg.io.load(path)`; pickles are refused, since they can hold code
torch wg:
    `DataLoader(…, num_workers=4)`
    one thread makes batches ahead: `prefetch=4`
torch optim:
    `optim.Adam(…, fused=True)`, `foreach=True`
    nothing to say: one kernel takes many parameters
torch wg: profiler
    `torch.profiler`, `torch.cuda.memory_summary()`
    `wg.profile`, `wg.memory`
torch wg: distributed
    `torch.distributed`
    tensors on several devices, moved by you
torch wg: inverse svd qr cholesky pinverse slogdet logdet matrix_power det lu eig
    `torch.inverse(x)`, `torch.svd(x)`, `torch.cholesky(x)`
    `wg.linalg.inv(x)`, `wg.linalg.svd(x)`, `wg.linalg.cholesky(x)`, and others of `wg.linalg`
torch wg: lgamma digamma erfinv logit polygamma xlogy i0
    `torch.lgamma(x)`, `torch.erfinv(x)`
    `wg.special.gammaln(x)`, `wg.special.erfinv(x)`, and others of `wg.special`
torch wg: stft istft hann_window
    `torch.stft`, `torch.hann_window`
    `wg.signal.stft`, `wg.signal.istft`, `wg.signal.windows.hann(n, sym=False)` and other windows
torch x: ndimension nelement element_size
    `x.ndimension()`, `x.nelement()`, `x.element_size()`
    `x.ndim`, `x.size`, `x.dtype.itemsize`
torch x: stride is_contiguous storage data_ptr
    `x.stride()`, `x.is_contiguous()`, `x.data_ptr()`
    not there: where elements lie in memory is up to the compiler
torch x: unfold
    `x.unfold(dim, size, step)`
    `wg.sliding_windows(x, size, step, dim)`
torch wg: sparse sparse_coo_tensor
    `torch.sparse`
    masks, and `wg.index_add`
torch wg: set_default_dtype get_default_dtype
    `torch.set_default_dtype(torch.float64)`
    `dtype=wg.float64` where a tensor is made
torch wg: set_printoptions
    `torch.set_printoptions()`
    `numpy.set_printoptions`: tensors are printed as NumPy's arrays
torch nn: DataParallel
    `nn.DataParallel(model)`
    `model` itself: one model is on one device
torch x: sparse_mask to_sparse
    `x.to_sparse()`
    masks, and `wg.index_add`
numpy wg:
    `np.transpose(x, axes)`
    `wg.permute_dims(x, axes)`, `x.permute(2, 0, 1)`; `x.transpose(0, 1)` swaps two axes of any
    number, as in PyTorch
numpy x: strides flags base
    `x.strides`, `x.flags`, `x.base`
    not there: a computed tensor is in C order
numpy x: itemsize
    `x.itemsize`
    `x.dtype.itemsize`
numpy wg:
    `np.unique(x, return_counts=True)`
    the same, or `wg.unique_counts(x)`; also `unique_values`, `unique_inverse`, `unique_all`
numpy wg:
    `np.cumsum(x)` of several axes
    `wg.cumsum(x.flatten(), 0)`: an axis is given
numpy wg: add_at
    `np.add.at(x, i, u)`
    `x = wg.index_add(x, i, u)`
numpy wg: vectorize frompyfunc
    `np.vectorize(f)`
    the expression itself: it is fused
numpy wg: fromfunction
    `np.fromfunction(f, shape)`
    `f(*wg.indices(shape))`
numpy wg: ndarray
    `np.ndarray`
    `wg.Tensor`
numpy wg: float_ int_ single
    `np.single`, `np.int_`
    `wg.float32`, `wg.int64`
numpy wg: savez savetxt loadtxt genfromtxt
    `np.savez(path, a=x)`
    `wg.io.save(path, {"a": x})`: `.npy`, `.npz`, `.safetensors`, `.gguf`
numpy wg: shape ndim size
    *
    `x.shape`, `x.ndim`, `x.size`
numpy wg: iscomplexobj isrealobj isscalar iterable typename
    *
    `wg.is_complex(x)`, `x.dtype`, `x.ndim`
numpy wg: issubdtype common_type min_scalar_type mintypecode isfortran
    *
    `wg.isdtype`, `wg.result_type`
numpy wg: require asfortranarray asarray_chkfinite
    *
    `wg.asarray`: a computed tensor is in C order
numpy wg: asmatrix bmat block
    *
    `wg.concat` of rows: `wg.concat([wg.concat([a, b], 1), wg.concat([c, d], 1)])`
numpy wg: frombuffer fromiter fromstring fromregex
    *
    `wg.asarray` of a buffer or of a list; NumPy's own, and `wg.asarray` of what it gives
numpy wg: load save savez_compressed fromfile
    *
    `wg.io.load(path)`, `wg.io.save(path, tensors)`: `.npy`, `.npz`, `.safetensors`, `.gguf`
numpy wg: apply_over_axes piecewise
    *
    the expression itself, `wg.where`, `wg.select`: it is fused
numpy wg: place
    *
    `x[mask] = values`, `wg.putmask`
numpy wg: resize
    *
    `wg.tile`, `x[:n]`, `x.reshape`
numpy wg: rollaxis
    *
    `wg.moveaxis`
numpy wg: diag_indices_from tril_indices_from triu_indices_from mask_indices
    *
    `wg.diag_indices(n)`, `wg.tril_indices(n)`
numpy wg: einsum_path
    *
    `wg.einsum`, which chooses the order of products itself
numpy wg: i0
    *
    `wg.special.i0`
numpy wg: histogram2d histogram_bin_edges
    *
    `wg.histogramdd`, `wg.histogram`, which give their edges
numpy wg: poly polydiv polysub roots
    *
    `wg.polyadd(a, -b)`; `wg.linalg.eigvals` of the companion matrix
numpy wg: real_if_close sort_complex
    *
    `wg.real(x)`; complex numbers have no order
numpy wg: spacing
    *
    `wg.nextafter(x, wg.inf) - x`
numpy wg: bitwise_count
    *
    `wg.unpackbits(x).sum()` of bytes
numpy wg: array2string array_repr array_str get_printoptions printoptions set_printoptions
    *
    tensors are printed as NumPy's arrays, by NumPy's options
numpy wg: base_repr binary_repr format_float_positional format_float_scientific
    *
    Python's format(x.item(), …)
numpy wg: may_share_memory shares_memory
    *
    slices and reshapes are views of `x`; a copy is `x.clone()`
numpy wg: nested_iters
    *
    `for row in x` waits for each row: whole arrays
numpy wg: busday_count busday_offset is_busday datetime_as_string datetime_data isnat
    *
    dates and strings are not there
numpy wg: geterr seterr geterrcall seterrcall getbufsize setbufsize
    *
    nothing warns: a division by zero is infinite, or NaN; of integers 0
numpy wg: get_include info show_config show_runtime test
    *
    `webgrad info`, `webgrad doctor`
numpy random: default_rng
    `np.random.default_rng(0)`
    `wg.random.Generator(0)`
numpy random: random standard_normal
    `rng.random(n)`, `rng.standard_normal(n)`
    `wg.random.uniform(n)`, `wg.random.normal(n)`
numpy random:
    `rng.normal(0, 1, n)`, `rng.uniform(-1, 1, n)`
    `wg.random.normal(n, mean=0, std=1)`, `wg.random.uniform(n, low=-1, high=1)`
numpy random: shuffle
    `rng.shuffle(x)`
    `x = wg.random.permutation(x)`
"""


@functools.cache
def rows() -> tuple[Row, ...]:
    """The rows of the table."""
    return tuple(_read())


def _read() -> Iterator[Row]:
    """A row is a line without indentation, a line of theirs, and ours."""
    for entry in re.split(r"\n(?=\S)", TABLE.strip()):
        head, theirs, *here = (line.strip() for line in entry.splitlines())
        where, _, names = head.partition(":")
        source, scope = where.split()
        yield Row(source, scope, names.strip(), theirs, " ".join(here))


def hint(scope: str, name: str) -> str:
    """What is written instead of a name that a scope does not have; empty where nothing is known."""
    for row in rows():
        if row.scope == scope and name in row.names.split():
            library, short = ("PyTorch", "torch") if row.source == "torch" else ("NumPy", "np")
            theirs = f"{short}.{name}" if row.theirs == "*" else row.theirs
            return f": {library}'s {theirs} is here: {row.here}".replace("`", "")
    return ""


@functools.lru_cache(1 << 10)
def message(owner: str, scope: str, name: str, known: tuple[str, ...]) -> str:
    """That a name is not there, and what is written instead, or which name is near to it."""
    if scope == "x" and name.endswith("_") and name[:-1] in known:
        return f"{owner} has no attribute {name!r}: write x[...] = x.{name[:-1]}(…), or x = x.{name[:-1]}(…)"
    near = [] if name.startswith("_") else difflib.get_close_matches(name, known, 1, 0.75)
    instead = hint(scope, name) or (f": did you mean {near[0]!r}?" if near else "")
    return f"{owner} has no attribute {name!r}{instead}"


def refusing(owner: str, scope: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module that has these names and no others."""

    def refuse(name: str) -> NoReturn:
        raise AttributeError(message(owner, scope, name, tuple(known)))

    return refuse
