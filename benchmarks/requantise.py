"""Write a model of quantised or half weights in other formats, for `decode.py` to measure.

    python benchmarks/requantise.py [MODEL] FOLDER [--format Q4_0 --format Q4_K_M]

Every matrix is unpacked and packed anew. `Q4_K_M` is a mix as llama.cpp makes it: Q4_K where rows are
multiples of 256, else Q5_0; Q6_K or Q8_0 for the embedding and for half of the projections down. What is
written is for measuring: scales are found by extremes alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg

FORMATS = ("Q4_0", "Q4_1", "Q8_0", "Q4_K_M", "F16", "BF16")
Array = np.ndarray[Any, Any]


def _bytes_of(*parts: Array) -> Array:
    """Parts of blocks, side by side."""
    count = len(parts[0])
    return np.concatenate([np.ascontiguousarray(each).view(np.uint8).reshape(count, -1) for each in parts], 1)


def _halves(numbers: Array) -> Array:
    return numbers.astype(np.float16).reshape(-1, 1)


def _quotient(x: Array, d: Array) -> Array:
    return np.asarray(np.round(np.divide(x, d, out=np.zeros_like(x), where=d != 0)))


def _q5_0(x: Array) -> Array:
    x = x.reshape(-1, 32)
    d = _halves(np.abs(x).max(1) / 15)
    quants = np.clip(_quotient(x, d.astype(np.float32)) + 16, 0, 31).astype(np.uint8)
    high = np.packbits(quants >> 4, axis=1, bitorder="little")
    return _bytes_of(d, high, (quants[:, :16] & 15) | (quants[:, 16:] & 15) << 4)


def _q4_k(x: Array) -> Array:
    x = x.reshape(-1, 8, 32)
    least = np.maximum(-x.min(2), 0)
    step = (x.max(2) + least) / 15
    d, offset = _halves(step.max(1) / 63), _halves(least.max(1) / 63)
    scales = np.clip(_quotient(step, d.astype(np.float32)), 0, 63).astype(np.uint8)
    minima = np.clip(_quotient(least, offset.astype(np.float32)), 0, 63).astype(np.uint8)
    sixes = _bytes_of(
        scales[:, :4] | scales[:, 4:] >> 4 << 6,
        minima[:, :4] | minima[:, 4:] >> 4 << 6,
        (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4,
    )
    factor, shift = d.astype(np.float32) * scales, offset.astype(np.float32) * minima
    quants = np.clip(_quotient(x + shift[..., None], factor[..., None]), 0, 15).astype(np.uint8)
    return _bytes_of(d, offset, sixes, quants[:, ::2] | quants[:, 1::2] << 4)


def _q6_k(x: Array) -> Array:
    x = x.reshape(-1, 16, 16)
    step = np.abs(x).max(2) / 31
    d = _halves(step.max(1) / 127)
    scales = np.clip(_quotient(step, d.astype(np.float32)), 0, 127).astype(np.int8)
    factor = (d.astype(np.float32) * scales)[..., None]
    quants = np.clip(_quotient(x, factor) + 32, 0, 63).astype(np.uint8).reshape(-1, 2, 4, 32)
    low = (quants[:, :, :2] & 15) | (quants[:, :, 2:] & 15) << 4
    high = quants >> 4
    high = high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6
    return _bytes_of(low, high, scales, d)


_PACKED = {"Q5_0": _q5_0, "Q4_K": _q4_k, "Q6_K": _q6_k}


def form_of(name: str, shape: tuple[int, ...], wanted: str) -> str:
    """The format of a matrix."""
    if wanted != "Q4_K_M":
        return wanted
    layer = name.split(".")[1] if name.startswith("blk.") else "0"
    large = name.startswith("token_embd") or ("ffn_down" in name and int(layer) % 2 == 0)
    if shape[-1] % 256:
        return "Q8_0" if large else "Q5_0"
    return "Q6_K" if large else "Q4_K"


def packed(x: Array, form: str) -> Any:
    """A matrix in a format, as `wg.io.save` takes it."""
    if form in ("F16", "BF16"):
        return wg.asarray(x, device="cpu").astype(wg.float16 if form == "F16" else wg.bfloat16)
    if form not in _PACKED:
        return wg.quantise(wg.asarray(x, device="cpu"), form)
    return wg.io.Blocks(form, x.shape, _PACKED[form](x).reshape(len(x), -1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="smollm2:135m")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", action="append", choices=FORMATS, help="several times (default: all)")
    options = parser.parse_args()
    source = wg.models.locate(options.model)
    tensors, metadata = wg.io.load(source, device="cpu"), wg.io.load_metadata(source)
    options.folder.mkdir(parents=True, exist_ok=True)
    for wanted in options.format or FORMATS:
        made: dict[str, Any] = {}
        for name, value in tensors.items():
            matrix = value.dequantise() if isinstance(value, wg.QuantisedTensor) else value
            shape = tuple(matrix.shape)
            made[name] = matrix
            if len(shape) == 2:
                made[name] = packed(matrix.numpy().astype(np.float32), form_of(name, shape, wanted))
        target = options.folder / f"{source.stem.rsplit('.', 1)[0]}.{wanted}.gguf"
        wg.io.save(target, made, metadata=metadata)
        print(target, f"{target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
