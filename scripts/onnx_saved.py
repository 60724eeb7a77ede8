"""What `wg.onnx.save` writes, in onnxruntime: `python -m scripts.onnx_saved --python PYTHON`.

In: modules of webgrad.nn, a CNN, a sentence encoder, single functions. Out: for each the largest difference
between webgrad's own result and onnxruntime's of the file, in another process. `--python` has onnxruntime.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import webgrad as wg
from webgrad import nn
from webgrad.ops.maps import MAPS

RTOL = 1e-3
RUN = """
import sys
import numpy as np
import onnxruntime as runtime
options = runtime.SessionOptions()
options.log_severity_level = 3
for folder in sys.argv[1:]:
    try:
        session = runtime.InferenceSession(folder + "/m.onnx", options, providers=["CPUExecutionProvider"])
        given = dict(np.load(folder + "/inputs.npz"))
        wanted = {each.name for each in session.get_inputs()}
        found = session.run(None, {name: each for name, each in given.items() if name in wanted})
        np.savez(folder + "/outputs.npz", *found)
    except Exception as error:
        open(folder + "/error.txt", "w").write(str(error))
"""


class Case(NamedTuple):
    """A function or module with inputs, and what to save it with."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    options: Mapping[str, Any] = {}
    others: tuple[Any, ...] = ()  # inputs of other sizes, which a dynamic file takes as well
    tolerance: float = RTOL


class Convolutions(nn.Module):
    """A small network for pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.SiLU())
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16, 10)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        x = self.first(x)
        x = self.pool(x + self.second(x))
        return wg.softmax(self.head(wg.adaptive_avg_pool2d(x, 1).flatten(1)))


class Masked(nn.Module):
    """Attention with a mask, of which one query sees nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: wg.Tensor, mask: wg.Tensor) -> wg.Tensor:
        found, _ = self.attention(x, x, x, attn_mask=mask, need_weights=False)
        return found  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """An encoder of the shape of all-MiniLM-L6-v2, with random weights: a vector for each text."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, 384), nn.Embedding(512, 384)
        self.norm = nn.LayerNorm(384, eps=1e-12)
        layer = nn.TransformerEncoderLayer(384, 12, 1536, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6)

    def forward(self, ids: wg.Tensor, mask: wg.Tensor) -> wg.Tensor:
        places = wg.arange(ids.shape[1], dtype=wg.int32, device=ids.device)
        x = self.norm(self.words(ids) + self.positions(places))
        x = self.layers(x, src_key_padding_mask=mask == 0)
        kept = mask.astype(wg.float32)[:, :, None]
        return wg.normalize((x * kept).sum(axis=1) / kept.sum(axis=1))


def normal(*shape: int, seed: int = 0) -> Any:
    """Random floats."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(below: int, *shape: int) -> Any:
    """Random integers from 0 up."""
    return np.random.default_rng(1).integers(0, below, shape).astype(np.int32)


def modules() -> Iterator[Case]:
    """Modules of nn, a CNN, and the encoder of MiniLM with random weights."""
    batch = {"dynamic": {"x": {0: "batch"}}}
    stack = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(), nn.Linear(16, 4), nn.LogSoftmax(-1))
    yield Case("linear stack", stack, (normal(5, 8),), {"dynamic": {"x": {0: "batch"}}}, (normal(3, 8),))
    pools = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, padding=1), nn.AvgPool2d(2)
    )
    yield Case("convolutions and pools", pools, (normal(2, 3, 33, 30),))
    yield Case("LSTM", nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True), (normal(2, 7, 6),))
    yield Case("GRU", nn.GRU(6, 8, batch_first=True), (normal(2, 7, 6),))
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
    sizes = {"src": {0: "batch", 1: "length"}}
    yield Case("transformer layer", layer, (normal(2, 5, 32),), {"dynamic": sizes}, (normal(3, 9, 32),))
    yield Case("norms", nn.Sequential(nn.GroupNorm(2, 8), nn.LayerNorm(6), nn.RMSNorm(6)), (normal(2, 8, 6),))
    yield Case("embedding", nn.Embedding(20, 6), (whole(20, 3, 4),))
    depthwise = nn.Sequential(
        nn.Conv2d(8, 8, 3, groups=8, padding="same"), nn.Hardswish(), nn.Conv2d(8, 4, 1)
    )
    yield Case("depthwise convolution", depthwise, (normal(1, 8, 9, 9),))
    back = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
    yield Case("transposed convolution", back, (normal(2, 4, 5, 6),))
    hidden = ~np.tril(np.ones((5, 5), bool))
    yield Case("attention with a mask", Masked(), (normal(2, 5, 16), hidden))
    more = (normal(5, 3, 16, 16),)
    yield Case("CNN", Convolutions(), (normal(2, 3, 16, 16),), batch, more)
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    texts = {"dynamic": {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}}
    other = (whole(30522, 3, 12), np.ones((3, 12), np.int32))
    yield Case("MiniLM", Encoder(), (whole(30522, 2, 9), mask), texts, other)
    half = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16)).to(wg.float16)
    yield Case("float16", half, (normal(3, 8).astype(np.float16),), tolerance=0.01)
    brief = nn.Sequential(nn.Linear(8, 16), nn.GELU()).to(wg.bfloat16)
    yield Case(
        "bfloat16", lambda x: brief(x.astype(wg.bfloat16)).astype(wg.float32), (normal(3, 8),), tolerance=0.01
    )


def maps() -> Iterator[Case]:
    """Every primitive that works element by element, of every type, with the values where they bend."""
    for row in MAPS:
        function = getattr(wg, row.public or row.name.removesuffix("_tanh"), None)
        if row.name == "gelu_tanh":
            function = wg_gelu_tanh
        for dtype in (*FLOATS, *INTEGERS, "bool"):
            kind = np.dtype(dtype).kind
            if function is None or kind not in row.types or row.name == "where":
                continue
            inputs = [values(dtype, row.domain, at) for at in range(row.arity)]
            if row.name.endswith("_shift"):
                inputs[1] = np.resize(np.arange(0, 2 * np.dtype(dtype).itemsize * 8), SHAPE).astype(dtype)
            if row.name == "power" and kind in "iu":
                inputs[1] = np.abs(inputs[1])
            tolerance = 0.01 if dtype == "float16" else RTOL
            if row.name.startswith("gelu"):  # at -inf the standard's formula is NaN
                inputs[0] = np.nan_to_num(inputs[0], neginf=-9.0)
            names = "abc"[: row.arity]
            call = eval(f"lambda {', '.join(names)}: function({', '.join(names)})", {"function": function})
            yield Case(f"{row.name} {dtype}", call, tuple(inputs), tolerance=tolerance)


FLOATS = ("float32", "float64", "float16")
INTEGERS = tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
SHAPE = (40, 9)


def wg_gelu_tanh(x: wg.Tensor) -> wg.Tensor:
    """Gelu's approximation."""
    return wg.gelu(x, approximate="tanh")


def values(dtype: str, domain: tuple[float, float], seed: int) -> Any:
    """Numbers of a domain, and, turned for each operand, those at the ends of a type."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.integers(0, 2, SHAPE).astype(bool)
    if kind == "f":
        found = generator.uniform(*domain, SHAPE)
        special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
        size = len(special) ** 2
        both = np.resize(special, size) if not seed else np.repeat(special, len(special))
        found.reshape(-1)[:size] = both
        return found.astype(dtype)
    limits = np.iinfo(dtype)
    found = generator.integers(limits.min, limits.max, SHAPE, dtype=dtype, endpoint=True)
    ends = np.array([limits.min, limits.max, 0, 1, limits.max - 1, 7], dtype)
    found.reshape(-1)[:36] = np.resize(ends, 36) if not seed else np.repeat(ends, 6)
    found[20:] //= max(1, limits.max // 60)
    return found


def others() -> Iterator[Case]:
    """Every other primitive, by functions that are made of it."""
    x, index = normal(4, 6), whole(4, 5)
    blocks = wg.quantise(wg.asarray(normal(8, 64), device="cpu"), "Q8_0")
    rows: dict[str, Any] = {
        "cast to int32": (lambda x: (x * 1e9).astype(wg.int32), x),
        "cast to int64": (lambda x: (x * 1e19).astype(wg.int64), x),
        "cast to uint64": (lambda x: (x * 1e19).astype(wg.uint64), x),
        "cast to uint8": (lambda x: (x * 300).astype(wg.uint8), x),
        "cast of integers": (lambda x: (x * 1000).astype(wg.int32).astype(wg.int8), x),
        "pad": (lambda x: wg.pad(x, ((1, 2), (0, 3)), constant_values=2.5), x),
        "slice": (lambda x: x[1:4:2, ::3], x),
        "flip": (lambda x: wg.flip(x, axis=(0, 1)), x),
        "window": (lambda x: wg.sliding_windows(x, 3, axis=1).sum(axis=-1), x),
        "take": (lambda x, index: wg.take(x, index, axis=0), x, index),
        "take_along": (lambda x, i: wg.take_along_axis(x, i, axis=1), x, whole(6, 4, 2)),
        "scatter_set": (lambda x, index: wg.index_set(x, index, wg.arange(30.0).reshape(5, 6)), x, index),
        "scatter_add": (lambda x, index: wg.index_add(x, index, wg.ones((5, 6))), x, index),
        "scatter_max": (lambda x, index: wg.index_max(x, index, wg.ones((5, 6))), x, index),
        "concat": (lambda x: wg.concat([x, x * 2], axis=1), x),
        "prod": (lambda x: wg.prod(x, axis=0), x),
        "max": (lambda x: wg.max(x, axis=1, keepdims=True), x),
        "min of NaN": (lambda x: wg.min(x, axis=1), np.where(x > 1, np.nan, x)),
        "sum of bytes": (lambda x: wg.sum(x, axis=0), values("uint8", (0, 1), 0)),
        "argmax": (lambda x: wg.argmax(x, axis=1), x),
        "cumulative_sum": (lambda x: wg.cumulative_sum(x, axis=1), x),
        "cumulative_prod": (lambda x: wg.cumulative_prod(x, axis=1), x),
        "cumulative_max": (lambda x: wg.cummax(x, axis=0), x),
        "matmul": (lambda a, b: a @ b, normal(2, 3, 4), normal(4, 5)),
        "matmul of integers": (lambda a, b: a @ b, whole(9, 3, 4), whole(9, 4, 5)),
        "causal attention": (
            lambda q, k: wg.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
            normal(1, 4, 5, 8),
            normal(1, 2, 5, 8),
        ),
        "attention with a length": (
            lambda q, k: wg.scaled_dot_product_attention(q, k, k, is_causal=True, length=4, window=2),
            normal(1, 2, 3, 8),
            normal(1, 2, 6, 8),
        ),
        "sort": (lambda x: wg.sort(x, axis=1), x),
        "sort of ties": (lambda x: wg.argsort(x, axis=0, descending=True), whole(3, 7, 4)),
        "topk": (lambda x: tuple(wg.topk(x, 2)), x),
        "searchsorted": (lambda x: wg.searchsorted(wg.arange(5.0), x.reshape(-1)), x),
        "histogram": (lambda x: wg.histogram(x, bins=4, range=(-1.0, 1.0))[0], x),
        "quantised": (lambda x: x @ blocks.T, normal(3, 64)),
        "rows of quantised": (lambda i: blocks[i], whole(8, 4)),
        "fft": (lambda x: wg.view_as_real(wg.fft.fft(x)), normal(3, 12)),
        "ifft": (lambda x: wg.fft.ifft(x).real, normal(3, 10)),
        "rfft": (lambda x: wg.view_as_real(wg.fft.rfft(x)), normal(3, 15)),
        "irfft": (lambda x: wg.fft.irfft(wg.fft.rfft(x) * 2, 12), normal(3, 12)),
        "where": (lambda c, x: wg.where(c, x, 0), x > 0, x),
        "where of bytes": (lambda c, x: wg.where(c, x, 3), x > 0, whole(200, 4, 6).astype(np.uint16)),
        "einsum": (lambda a, b: wg.einsum("bij,bjk->bik", a, b), normal(2, 3, 4), normal(2, 4, 5)),
        "var": (lambda x: wg.var(x, axis=1), x),
        "logsumexp": (lambda x: wg.logsumexp(x, axis=1), x),
        "interpolate": (lambda x: wg.interpolate(x, scale_factor=2, mode="bilinear"), normal(1, 2, 4, 5)),
        "arange": (lambda x: x + wg.arange(6), x),
        "mean": (lambda x: wg.mean(x), x),
        "ceil pool": (lambda x: wg.max_pool2d(x, 2, ceil_mode=True), normal(1, 2, 5, 5)),
    }
    for name, (function, *inputs) in rows.items():
        yield Case(name, function, tuple(inputs))


def compare(cases: list[Case], python: str, opset: int, only: str) -> int:
    """Save all, run the files with the other Python, print a line each; how many differ."""
    wrong = 0
    with tempfile.TemporaryDirectory() as text:
        found: list[tuple[Case, Path, list[Any]]] = []
        for at, case in enumerate(each for each in cases if only in each.name):
            try:
                found += list(_written(case, Path(text) / str(at), opset))
            except wg.WebgradError as error:
                print(f"refused {case.name:24} {error}")
        subprocess.run([python, "-c", RUN, *(str(folder) for _, folder, _ in found)], check=True)
        for case, folder, ours in found:
            line, is_right = _verdict(folder, ours, case.tolerance)
            wrong += not is_right
            print(f"{'ok   ' if is_right else 'WRONG'} {case.name:24} {line}", flush=True)
    return wrong


def _written(case: Case, folder: Path, opset: int) -> Iterator[tuple[Case, Path, list[Any]]]:
    """The file with inputs, and webgrad's own results; once more for inputs of other sizes."""
    if isinstance(case.function, nn.Module):
        case.function.eval()
    for number, inputs in enumerate([case.inputs, *([case.others] if case.others else [])]):
        target = folder.with_name(f"{folder.name}-{number}")
        target.mkdir()
        tensors = tuple(wg.asarray(each, device="cpu") for each in case.inputs)
        saved = wg.onnx.save(case.function, tensors, target / "m.onnx", opset=opset, **case.options)
        model = wg.graph_of(case.function, tensors)
        names = [model.nodes[at].name for at in model.inputs]
        given = [wg.asarray(each, device="cpu") for each in inputs]
        np.savez(target / "inputs.npz", **dict(zip(names, inputs, strict=True)))
        call: Any = case.function
        results = call(*given)
        assert saved.stat().st_size
        yield case, target, [each.numpy() for each in _leaves(results)]


def _leaves(value: Any) -> Iterator[wg.Tensor]:
    if isinstance(value, wg.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _leaves(each)


def _verdict(folder: Path, ours: list[Any], tolerance: float) -> tuple[str, bool]:
    if (folder / "error.txt").exists():
        return (folder / "error.txt").read_text()[:300], False
    theirs = [*np.load(folder / "outputs.npz").values()]
    worst = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        if mine.shape != other.shape or (mine.dtype != other.dtype and other.dtype.kind != "V"):
            return f"{mine.dtype}{mine.shape}, onnxruntime {other.dtype}{other.shape}", False
        worst = max(worst, _gap(mine.astype(np.float64), other.astype(np.float64)))
    return f"largest difference {worst:.1e}", worst <= tolerance


def _gap(first: Any, second: Any) -> float:
    """The largest difference, as a share of each value, or of a hundredth of the largest one."""
    is_finite = np.isfinite(first) & np.isfinite(second)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if (~same & ~is_finite).any():
        return np.inf
    size = np.where(is_finite, np.abs(second), 0)
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(first - second)) / np.maximum(size, 1e-2 * size.max(initial=1e-6))
    return float(gap.max(initial=0))


def main(arguments: list[str]) -> int:
    """Compare what the command line names; 1 where something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["modules", "others", "maps"])
    parser.add_argument("--python", default=sys.executable, help="a Python that has onnxruntime")
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args(arguments)
    probe = subprocess.run([options.python, "-c", "import onnxruntime"], capture_output=True, check=False)
    if probe.returncode:
        print(f"SKIPPED: {options.python} has no onnxruntime: nothing was compared", file=sys.stderr)
        return 0
    cases = {"modules": modules, "maps": maps, "others": others}
    chosen = [case for each in options.parts for case in cases[each]()]
    return min(1, compare(chosen, options.python, options.opset, options.only))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
