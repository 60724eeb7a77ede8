"""A step of a published U-Net of 63 M weights beside torch, and its pictures beside plain NumPy's.

    PYTHONPATH=.:.venv/lib/python3.11/site-packages .peers/torch/bin/python benchmarks/faces.py FOLDER

FOLDER is docs/64x64_cosin_300 of github.com/wangjia184/diffusion_model: faces of 64 × 64. torch has the same
network of its own modules, with the graph's weights; both run in one process, in turns, on one processor.
`--pictures` compares 16 pictures of 50 DDIM steps with those that NumPy makes, in a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
WIDTHS, ATTENDS, BLOCKS, GROUPS = (64, 128, 256, 512), (False, False, True, True), 2, 8
PIECES = Path(__file__).parents[1]


def weights_of(folder: Path, wg: Any) -> dict[str, list[Array]]:
    """The weights of each kind of layer, in the order in which the layers were made."""
    found: dict[str, dict[int, dict[str, Array]]] = {}
    weights = wg.io.open(folder)
    for name in weights:
        layer = re.search(r"(conv2d|dense|group_normalization)_(\d+)/(.+)", name)
        if layer and weights.form(name) == "U8":
            kind, number, what = layer.groups()
            found.setdefault(kind, {}).setdefault(int(number), {})[what] = weights.host(name)
    [frequencies] = (
        weights.host(each) for each in weights if each.endswith("time_embedding_1/strided_slice_1")
    )
    made = {
        kind: [each for number in sorted(layers) for each in _pair(kind, layers[number])]
        for kind, layers in found.items()
    }
    return made | {"frequencies": [frequencies]}


def _pair(kind: str, layer: dict[str, Array]) -> tuple[Array, Array]:
    """A layer's weight as torch has it, and its bias."""
    named = {what.split("/")[0]: array for what, array in layer.items()}
    if kind == "group_normalization":
        return named["Reshape_1"], named["Reshape_2"]
    weight = named.get("Conv2D", named.get("MatMul", named.get("Tensordot")))
    assert weight is not None
    return weight.transpose(3, 2, 0, 1) if kind == "conv2d" else weight.T, named["BiasAdd"]


def torch_unet(weights: dict[str, list[Array]], torch: Any) -> Callable[[Any, Any], Any]:
    """The network as its author made it, layer by layer."""
    nn, functional = torch.nn, torch.nn.functional
    given: dict[str, Iterator[Any]] = {
        kind: iter([torch.from_numpy(np.ascontiguousarray(each)) for each in arrays])
        for kind, arrays in weights.items()
    }

    def filled(layer: Any, kind: str) -> Any:
        layer.weight.data, layer.bias.data = next(given[kind]), next(given[kind])
        return layer

    def conv(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> Any:
        around = size // 2 if stride == 1 else 0
        return filled(nn.Conv2d(inputs, outputs, size, stride, around), "conv2d")

    def norm(width: int) -> Any:
        return filled(nn.GroupNorm(GROUPS, width, eps=1e-3), "group_normalization")

    def dense(inputs: int, outputs: int) -> Any:
        return filled(nn.Linear(inputs, outputs), "dense")

    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, inputs: int, width: int) -> None:
            super().__init__()
            self.skip = nn.Identity() if inputs == width else conv(inputs, width, 1)
            self.time = dense(4 * WIDTHS[0], width)
            self.norm1, self.conv1 = norm(inputs), conv(inputs, width)
            self.norm2, self.conv2 = norm(width), conv(width, width)

        def forward(self, x: Any, time: Any) -> Any:
            y = self.conv1(functional.silu(self.norm1(x)))
            y = y + self.time(functional.silu(time))[:, :, None, None]
            return self.conv2(functional.silu(self.norm2(y))) + self.skip(x)

    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm = norm(width)
            self.parts = nn.ModuleList(dense(width, width) for _ in range(4))

        def forward(self, x: Any) -> Any:
            x = self.norm(x)
            rows = x.flatten(2).transpose(1, 2)
            queries, keys, values = (part(rows) for part in self.parts[:3])
            found = functional.scaled_dot_product_attention(queries, keys, values)
            return x + self.parts[3](found).transpose(1, 2).reshape(x.shape)

    class UNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.frequencies = next(given["frequencies"])
            self.first = conv(3, WIDTHS[0])
            self.time = nn.ModuleList([dense(4 * WIDTHS[0], 4 * WIDTHS[0]) for _ in range(2)])
            self.down, self.up = nn.ModuleList(), nn.ModuleList()
            skips, width = [WIDTHS[0]], WIDTHS[0]
            for at, size in enumerate(WIDTHS):
                for _ in range(BLOCKS):
                    self.down.append(nn.ModuleList(block(width, size, ATTENDS[at])))
                    width = size
                    skips.append(width)
                if size != WIDTHS[-1]:
                    self.down.append(conv(width, width, 3, 2))
                    skips.append(width)
            self.middle = nn.ModuleList([*block(width, width, True), Residual(width, width)])
            for at, size in reversed(list(enumerate(WIDTHS))):
                for _ in range(BLOCKS + 1):
                    self.up.append(nn.ModuleList(block(width + skips.pop(), size, ATTENDS[at])))
                    width = size
                if at:
                    self.up.append(conv(width, width))
            self.norm, self.last = norm(width), conv(width, 3)

        def forward(self, x: Any, steps: Any) -> Any:
            angles = steps[:, None] * self.frequencies
            time = torch.cat([angles.sin(), angles.cos()], 1)
            time = self.time[1](functional.silu(self.time[0](time)))
            x = self.first(x)
            skips = [x]
            for layer in self.down:
                x = through(layer, x, time) if isinstance(layer, nn.ModuleList) else halved(layer, x)
                skips.append(x)
            x = through(self.middle, x, time)
            for layer in self.up:
                if isinstance(layer, nn.ModuleList):
                    x = through(layer, torch.cat([x, skips.pop()], 1), time)
                else:
                    x = layer(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
            return self.last(functional.silu(self.norm(x)))

    def block(inputs: int, width: int, attends: bool) -> list[Any]:
        return [Residual(inputs, width), *([Attention(width)] if attends else [])]

    def halved(layer: Any, x: Any) -> Any:
        return layer(functional.pad(x, (0, 1, 0, 1)))

    def through(layers: Any, x: Any, time: Any) -> Any:
        for layer in layers:
            x = layer(x, time) if isinstance(layer, Residual) else layer(x)
        return x

    return UNet().eval()


def in_turns(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each case, in turns."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            start = time.process_time()
            run()
            found[name].append(time.process_time() - start)
    return found


def compare_steps(folder: Path, counts: list[int], rounds: int, wg: Any) -> None:
    """A prediction's time beside torch's."""
    import torch

    torch.set_num_threads(1)
    pipe = wg.diffusion.load(folder, device="cpu")
    theirs = torch_unet(weights_of(folder, wg), torch)
    predict = wg.jit(lambda x: pipe.unet(x, 150.0))
    for count in counts:
        x = np.random.default_rng(0).standard_normal((count, 3, 64, 64)).astype(np.float32)
        a, b, steps = wg.asarray(x, device="cpu"), torch.from_numpy(x), torch.full((count,), 150.0)
        with wg.no_grad(), torch.inference_mode():
            cases = {"webgrad": lambda a=a: predict(a).numpy(), "torch": lambda b=b, s=steps: theirs(b, s)}
            worst = abs(cases["webgrad"]() - cases["torch"]().numpy()).max()
            in_turns(cases, 2)
            found = in_turns(cases, rounds)
        ours, other = (min(found[name]) for name in ("webgrad", "torch"))
        middle = statistics.median(b / a for a, b in zip(found["webgrad"], found["torch"], strict=True))
        print(
            f"{count:2} pictures: webgrad {ours * 1e3:.0f} ms, torch {other * 1e3:.0f} ms, "
            f"ratio {other / ours:.2f} (median {middle:.2f}), greatest difference {worst:.1e}",
            flush=True,
        )


def compare_pictures(folder: Path, device: str, wg: Any) -> float:
    """The greatest difference between 16 pictures and those of plain NumPy."""
    from tests.diffusion.numpy_graph import NumpyGraph, ddim

    pipe = wg.diffusion.load(folder, device=device)
    noise = wg.random.Generator(0).normal((16, 3, 64, 64), device="cpu")
    *_, last = pipe.steps(16, steps=50, noise=noise.to_device(device))
    wanted = ddim(NumpyGraph(folder), np.ascontiguousarray(noise.numpy().transpose(0, 2, 3, 1)), 50)
    return float(abs(last.latents.numpy().transpose(0, 2, 3, 1) - wanted).max())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 4, 16], help="pictures at once")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pictures", action="store_true", help="compare pictures with NumPy's instead")
    parser.add_argument("--device", default="cpu", help="for --pictures")
    options = parser.parse_args()
    if not (options.folder / "model.json").is_file():
        print(f"{options.folder} has no model.json: fetch the folder first, see the top of this file")
        return 2
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sys.path.insert(0, str(PIECES))
    import webgrad as wg

    if options.pictures:
        print(f"greatest difference {compare_pictures(options.folder, options.device, wg):.1e}")
    else:
        compare_steps(options.folder, options.counts, options.rounds, wg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
