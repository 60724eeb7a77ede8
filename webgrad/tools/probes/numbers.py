"""Probes of single numbers: NaN and infinities, rounding, integers, casts, and the accuracy of functions.

In: an open device. Out: findings. What webgrad promises is compared with NumPy, and anything else is a
problem; what a plain WGSL kernel does, which promises less, is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import webgrad as wg

from ...arrays import Array, ml_dtypes, np
from ...ops.maps import MAPS
from ..accuracy import exact, samples, smallest, worst
from .findings import Finding, differing, judged, note, ok

if TYPE_CHECKING:  # wg.Device loads wgpu, without which the cpu is probed all the same
    AnyDevice = wg.Device | wg.CpuDevice

__all__ = [
    "accuracy",
    "bfloat16",
    "conversions",
    "float16",
    "integers",
    "not_numbers",
    "plain_kernel",
    "subnormals",
]

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 2.5, -300, 3e38, 1e-30], np.float32)
Function = Callable[[Any, Any, Any], Any]  # of a namespace (webgrad or NumPy) and two arrays


def _softmax(m: Any, x: Any, _: Any) -> Any:
    if m is wg:
        return wg.softmax(x, axis=-1)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# Of x as a column and y as a row, both of all special numbers.
PAIRS: dict[str, Function] = {
    "maximum": lambda m, x, y: m.maximum(x, y),
    "minimum": lambda m, x, y: m.minimum(x, y),
    "less": lambda m, x, y: x < y,
    "greater_equal": lambda m, x, y: x >= y,
    "equal": lambda m, x, y: x == y,
    "not_equal": lambda m, x, y: x != y,
    "add": lambda m, x, y: x + y,
    "subtract": lambda m, x, y: x - y,
    "multiply": lambda m, x, y: x * y,
    "where": lambda m, x, y: m.where(x > y, x, y),
    "isnan": lambda m, x, y: m.isnan(x),
    "isinf": lambda m, x, y: m.isinf(x),
    "isfinite": lambda m, x, y: m.isfinite(x),
    "signbit": lambda m, x, y: m.signbit(x),
}
# Of rows: each holds one special number among ordinary ones.
ROWS: dict[str, Function] = {
    "sum": lambda m, x, _: m.sum(x, axis=-1),
    "max": lambda m, x, _: m.max(x, axis=-1),
    "min": lambda m, x, _: m.min(x, axis=-1),
    "argmax": lambda m, x, _: m.argmax(x, axis=-1).astype(m.int32),
    "sort": lambda m, x, _: m.sort(x, axis=-1),
}
# Compared where the results are NaN or infinite, and closely elsewhere.
CLOSE: dict[str, Function] = {
    "exp": lambda m, x, _: m.exp(x),
    "log": lambda m, x, _: m.log(x),
    "tanh": lambda m, x, _: m.tanh(x),
    "sqrt": lambda m, x, _: m.sqrt(x),
    "softmax": _softmax,
}


def _rows() -> Array:
    rows = np.tile(np.array([1.0, -2.0, 0.5], np.float32), (SPECIAL.size, 1))
    return np.concatenate([rows, SPECIAL[:, None]], axis=1)


def _both(
    device: AnyDevice, functions: dict[str, Function], x: Array, y: Array
) -> Iterator[tuple[str, Array, Array]]:
    """Name, what the device gives, what NumPy gives; computed in one go, so that kernels fuse as ever."""
    tensors = [wg.asarray(each, device=device) for each in (x, y)]
    results = {name: function(wg, *tensors) for name, function in functions.items()}
    wg.eval(*results.values())
    for name, result in results.items():
        with np.errstate(all="ignore"):
            expected = np.asarray(functions[name](np, x, y))
        yield name, result.numpy(), expected


def _rounded(pairs: Iterator[tuple[str, Array, Array]]) -> Iterator[tuple[str, Array, Array]]:
    """Results that are close count as equal."""
    for name, actual, expected in pairs:
        with np.errstate(all="ignore"):
            close = np.abs(actual - expected) <= 1e-5 * np.abs(expected)
        yield name, np.where(close, expected, actual), expected


def not_numbers(device: AnyDevice) -> Finding:
    """NaN and infinities through webgrad's functions."""
    column, row, rows = SPECIAL[:, None], SPECIAL[None, :], _rows()
    wrong = differing(_both(device, PAIRS, column, row)) + differing(_both(device, ROWS, rows, rows))
    wrong += differing(_rounded(_both(device, CLOSE, rows, rows)))
    count = len(PAIRS) + len(ROWS) + len(CLOSE)
    return judged("NaN and infinity", f"{count} functions give what NumPy gives", wrong, functions=count)


# A plain kernel: name → (WGSL over x and y, giving f32 or bool; what NumPy gives)
PLAIN: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "load and store": ("x", lambda x, y: x),
    "NaN by its bits": ("(bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u", lambda x, y: np.isnan(x)),
    "x != x": ("x != x", lambda x, y: x != x),
    "x < y": ("x < y", lambda x, y: x < y),
    "max(x, y)": ("max(x, y)", np.maximum),
    "min(x, y)": ("min(x, y)", np.minimum),
    "x + y": ("x + y", lambda x, y: x + y),
    "x - x": ("x - x", lambda x, y: x - x),
    "x * 0": ("x * 0.0", lambda x, y: x * np.float32(0)),
    "exp(x)": ("exp(x)", lambda x, y: np.exp(x)),
    "log(x)": ("log(x)", lambda x, y: np.log(x)),
    "sqrt(x)": ("sqrt(x)", lambda x, y: np.sqrt(x)),
}
_NEEDED = ("load and store", "NaN by its bits")  # what webgrad's own functions are made of


def _plain_source() -> str:
    lines = []
    for at, (text, _) in enumerate(PLAIN.values()):
        is_test = any(sign in text for sign in ("<", ">", "!=")) and "max" not in text
        value = f"select(0.0, 1.0, {text})" if is_test else text
        lines.append(f"    result[i * {len(PLAIN)}u + {at}u] = {value};")
    return f"""
@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;
@compute @workgroup_size(64)
fn plain(@builtin(global_invocation_id) id: vec3<u32>) {{
    let i = id.x;
    if (i >= arrayLength(&left)) {{ return; }}
    let x = left[i];
    let y = right[i];
{chr(10).join(lines)}
}}"""


def plain_kernel(device: wg.Device) -> Finding:
    """What the driver's compiler makes of NaN and infinities in a kernel of the user's own."""
    x, y = (each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL, indexing="ij"))
    kernel = wg.kernel(_plain_source(), label="plain", device=device)
    buffers = [device.upload(np.ascontiguousarray(each)) for each in (x, y)]
    result = device.upload(np.zeros(x.size * len(PLAIN), np.float32))
    kernel(*buffers, result, threads=x.size)
    given = device.read(result).view(np.float32).reshape(x.size, len(PLAIN))
    with np.errstate(all="ignore"):
        pairs = [
            (name, given[:, at], np.asarray(numpy(x, y)).astype(np.float32))
            for at, (name, (_, numpy)) in enumerate(PLAIN.items())
        ]
    other = differing(_rounded(iter(pairs)))
    if set(other) & set(_NEEDED):
        return judged("NaN in plain WGSL", "", other, differs=other)
    if not other:
        return ok("NaN in plain WGSL", f"{len(PLAIN)} expressions give what NumPy gives", differs=[])
    return note(
        "NaN in plain WGSL",
        f"the compiler assumes there is none in {', '.join(other)}",
        "WGSL allows that, and webgrad's own functions go by bits; in kernels of your own test "
        "(bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u",
        differs=other,
    )


def subnormals(device: AnyDevice) -> Finding:
    """Whether numbers below 2^-126 are kept."""
    x = np.array([1e-39, -1e-40, 2.0**-149, 2.0**-126], np.float32)
    one = wg.asarray(np.ones(4, np.float32), device=device)
    kept = (wg.asarray(x, device=device) * one).numpy() == x
    if not kept[-1]:
        return judged("float32 subnormals", "", ["2^-126, the smallest normal number, is lost"])
    if kept.all():
        return ok("float32 subnormals", "kept", kept=True)
    return note(
        "float32 subnormals",
        "read or written as 0",
        "WebGPU allows that; scale values that are below 1e-38 where they matter",
        kept=False,
    )


def _between(half: Any) -> Array:
    """float32 numbers around every place where rounding to a half changes: ties and both neighbours."""
    every = np.arange(1 << 16, dtype=np.uint16).view(half).astype(np.float32)
    finite = np.sort(every[np.isfinite(every)])
    middle = (finite[1:].astype(np.float64) + finite[:-1]) / 2
    ends = [np.nan, np.inf, -np.inf, 65519.996, 65520, -65520, 1e30, 3.39e38, 3.4e38, 1e-30]
    ties = middle.astype(np.float32)
    beside = [np.nextafter(ties, np.float32(way)) for way in (np.inf, -np.inf)]
    return np.concatenate([ties, *beside, finite, np.array(ends, np.float32)])


def _tiny(*arrays: Array) -> Array:
    """Where one of the numbers is subnormal as float32: devices may take it for 0."""
    least, wide = smallest(np.float32), [np.abs(each.astype(np.float32)) for each in arrays]
    return np.asarray(np.any([(each > 0) & (each < least) for each in wide], axis=0))


def _halves(device: AnyDevice, name: str, half: Any) -> Finding:
    dtype = getattr(wg, name)
    wide, every = _between(half), np.arange(1 << 16, dtype=np.uint16).view(half)
    other = every[np.random.default_rng(0).permutation(every.size)]
    x, a, b = (wg.asarray(each, device=device) for each in (wide, every, other))
    results = [x.astype(dtype), a.astype(wg.float32), a + b, a * b]
    wg.eval(*results)
    with np.errstate(all="ignore"):
        checks = {
            "rounding from float32": (wide.astype(half), _tiny(wide, wide.astype(half))),
            "widening": (every.astype(np.float32), _tiny(every)),
            "sums": (every + other, _tiny(every, other, every + other)),
            "products": (every * other, _tiny(every, other, every * other)),
        }
    wrong, count = [], 0
    for (title, (right, left_out)), result in zip(checks.items(), results, strict=True):
        given = result.numpy()
        off = ~(left_out | (given == right) | (np.isnan(given) & np.isnan(right)))
        count += int((~left_out).sum())
        if off.any():
            wrong.append(f"{title} ({int(off.sum())} of {off.size})")
    text = f"{count:,} results as NumPy's: ties to even, overflow to infinity"
    return judged(name, text, wrong, checked=count)


def float16(device: AnyDevice) -> Finding:
    """Rounding to and from float16, and its arithmetic."""
    return _halves(device, "float16", np.float16)


def bfloat16(device: AnyDevice) -> Finding:
    """Rounding to and from bfloat16, and its arithmetic."""
    return _halves(device, "bfloat16", ml_dtypes.bfloat16)


INTEGERS = ("int32", "uint32", "int8", "uint8", "int16", "uint16", "int64", "uint64")
ARITHMETIC: dict[str, Function] = {
    "//": lambda m, x, y: x // y,
    "%": lambda m, x, y: x % y,
    "*": lambda m, x, y: x * y,
    "<<": lambda m, x, y: x << y,
    ">>": lambda m, x, y: x >> y,
}


def _offered(device: AnyDevice, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if "64" not in name or "int64" in device.info.features]


def integers(device: AnyDevice) -> Finding:
    """Division, remainder and shifts, where hardware differs: negative numbers, 0, the ends of the range."""
    wrong, types = [], _offered(device, INTEGERS)
    for name in types:
        info = np.iinfo(name)
        small = [-33, -32, -9, -7, -2, -1] if info.min < 0 else []
        edges = [info.min, info.min + 1, *small, 0, 1, 2, 3, 7, 31, 32, 33, 64, info.max - 1, info.max]
        values = np.array(edges, name)
        found = differing(_both(device, ARITHMETIC, values[:, None], values[None, :]))
        wrong += [f"{name} {operation}" for operation in found]
    text = f"//, %, *, << and >> of {len(types)} types: by 0, negative, at the ends"
    return judged("integers", text, wrong, types=types)


CAST = [np.nan, np.inf, -np.inf, -1.5, -0.5, 0.5, 1.5, 127.9, 128.0, 255.9, 256.0, -129.0, 32768.0, 65536.0]
CAST += [2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 9.3e18, 1.9e19, -9.3e18, 3e38]


def conversions(device: AnyDevice) -> Finding:
    """Floats to integers: truncated, kept within the range, NaN as 0."""
    x = np.array(CAST, np.float32)
    types = _offered(device, INTEGERS)
    tensor = wg.asarray(x, device=device)
    results = [tensor.astype(getattr(wg, name)) for name in types]
    wg.eval(*results)
    pairs = [
        (f"to {name}", result.numpy(), _kept_in_range(x, name))
        for name, result in zip(types, results, strict=True)
    ]
    text = f"float32 to {len(types)} types: truncated, kept in range, NaN as 0"
    return judged("casts to integers", text, differing(pairs), types=types)


def _kept_in_range(x: Array, name: str) -> Array:
    info = np.iinfo(name)
    whole = [0 if np.isnan(each) else _whole(float(each), info) for each in x]
    return np.array(whole, name)


def _whole(number: float, info: np.iinfo[Any]) -> int:
    if np.isinf(number):
        return int(info.max if number > 0 else info.min)
    return min(max(int(number), int(info.min)), int(info.max))


ACCURATE = ("exp", "log", "sin", "tanh", "power", "rsqrt", "sqrt", "divide")
_SAMPLES = 1 << 14


def accuracy(device: AnyDevice) -> Finding:
    """Functions against float64, in units in the last place, and the table's promise."""
    rows = {row.name: row for row in MAPS}
    errors, wrong = {}, []
    for name in ACCURATE:
        operands = _without_subnormals(samples(rows[name], _SAMPLES))
        given = getattr(wg, name)(*[wg.asarray(each, device=device) for each in operands]).numpy()
        found = worst(given, exact(rows[name], operands), operands)
        errors[name] = round(found.error, 3)
        if found.error > rows[name].tolerance:
            place = ", ".join(f"{each:.6g}" for each in found.place)
            wrong.append(f"{name}({place}) by {found.error:.3g} ulp, {rows[name].tolerance:g} promised")
    text = "largest errors in ulp: " + ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
    return judged("accuracy", text, wrong, ulp=errors)


def _without_subnormals(operands: list[Array]) -> list[Array]:
    """Devices may read subnormal numbers as 0, which `subnormals` tells."""
    fine = np.ones(operands[0].shape, np.bool_)
    for each in operands:
        fine &= ~((each != 0) & (np.abs(each) < smallest(each.dtype)))
    return [each[fine] for each in operands]
