"""Würstchen v2 at full size: what a picture of 1024 × 1024 asks of the runtime.

The published architecture (prior, decoder, autoencoder and both text encoders, three billion weights in half
precision, drawn at random), 60 steps of the prior and 12 of the decoder, guidance in both. Commands, buffers,
bind groups, pipelines and memory are counted after every step. A software adapter would take days, so every
command runs with its grid cut to one workgroup, unless --whole is given: what is counted is the same, the
picture is not. Usage: wuerstchen.py [--steps 12] [--prior-steps 60] [--size 1024] [--whole] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import gpu, inline_dispatches, report, resident_bytes

inline_dispatches()

import numpy as np  # noqa: E402

import webgrad as wg  # noqa: E402
from webgrad.diffusion.paella import PaellaVQ, PaellaVQConfig  # noqa: E402
from webgrad.diffusion.prompts import Prompts  # noqa: E402
from webgrad.diffusion.text_encoders import CLIPText, CLIPTextConfig  # noqa: E402
from webgrad.diffusion.wuerstchen import DiffNeXt, DiffNeXtConfig, Prior, PriorConfig  # noqa: E402
from webgrad.nn.parameter import assign  # noqa: E402
from webgrad.runtime.webgpu import Device  # noqa: E402

TEXT_OF_PRIOR = CLIPTextConfig(
    hidden_size=1280,
    intermediate_size=5120,
    num_hidden_layers=32,
    num_attention_heads=20,
    hidden_act="gelu",
)
TEXT_OF_DECODER = CLIPTextConfig(
    hidden_size=1024,
    intermediate_size=4096,
    num_hidden_layers=24,
    num_attention_heads=16,
    hidden_act="gelu",
)
PRIOR = PriorConfig(c_in=16, c=1536, c_cond=1280, c_r=64, depth=32, nhead=24)
DRAWN = 1 << 20  # numbers that are drawn, and repeated for all weights
COUNTERS = (
    "commands",
    "submissions",
    "buffers_created",
    "bind_groups_created",
    "pipelines_compiled",
    "bytes_live",
    "bytes_peak",
)
Counts = Mapping[str, int]


def network(kind: Any, config: Any, device: str) -> Any:
    """A network with random weights of half precision on a device, of which no other copy is made."""
    module = kind(config).eval()
    block = (np.random.default_rng(0).standard_normal(DRAWN) * 0.02).astype(np.float16)
    with wg.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.dtype.kind == "f":
                assign(tensor, wg.asarray(np.resize(block, tensor.shape), device=device))
    return module.to(device=device)


def prompts() -> Prompts:
    """A token for each letter, since a vocabulary is no part of what is measured."""
    engine = SimpleNamespace(encode=lambda text, **_: SimpleNamespace(ids=[ord(each) % 256 for each in text]))
    return Prompts(engine, 77, 49406, 49407, 49407)


def cut_grids(device: Device) -> None:
    """From now on every command runs one workgroup."""
    encoder = device.queue.context.encoder
    prepare = encoder.prepare

    def cut(rows: Sequence[Any]) -> Any:
        return prepare([row._replace(grid=(1, 1, 1)) for row in rows])

    encoder.prepare = cut  # type: ignore[method-assign]


def counts(device: Device) -> Counts:
    """The counters now, and the resident memory of the process."""
    stats = device.stats()
    return {name: int(stats[name]) for name in COUNTERS} | {"resident": resident_bytes()}


def picture(pipe: wg.diffusion.Wuerstchen, device: Device, given: argparse.Namespace) -> list[Counts]:
    """The counts before the first step, after every step, and after the picture is decoded."""
    options = {"prior_steps": given.prior_steps, "prior_guidance": 4.0, "steps": given.steps, "guidance": 2.0}
    options |= {"size": (given.size, given.size), "seed": 0}
    found = [counts(device)]
    began = time.perf_counter()
    for preview in pipe.steps("an astronaut on a horse", negative="rain", **options):
        device.synchronize()
        found.append(counts(device))
        print(
            f"\rstep {preview.step} of {preview.steps}, {time.perf_counter() - began:.0f} s",
            end="",
            flush=True,
        )
    shape = preview.pictures().shape
    found.append(counts(device))
    print(f"\rpicture of {shape}, {time.perf_counter() - began:.0f} s")
    return found


def summary(found: Sequence[Counts], weights: int, given: argparse.Namespace) -> bool:
    """A line for each count; whether all of them are within their goals."""
    begun, last, split = found[0], found[-1], given.prior_steps
    stages = {"prior": found[: split + 1], "decoder": found[split:-1]}
    for name, rows in stages.items():
        for at, (before, after) in enumerate(pairwise(rows), 1):
            if at in (1, 2, 3, 4, len(rows) - 1):
                made = {each: after[each] - before[each] for each in COUNTERS[:5]}
                live, resident = after["bytes_live"] >> 20, after["resident"] >> 20
                print(f"{name:<8} step {at:>2}: {made}, {live:,} MiB live, {resident:,} MiB resident")
    late = max(
        after["pipelines_compiled"] - before["pipelines_compiled"]
        for rows in stages.values()
        for before, after in pairwise(rows[1:])
    )
    growth = max(
        max(row["bytes_live"] for row in rows[2:]) / rows[2]["bytes_live"] - 1 for rows in stages.values()
    )
    made = {name: last[name] - begun[name] for name in COUNTERS[:5]}
    print(f"{made['commands']:,} commands in {made['submissions']:,} submissions")
    print(f"{begun['buffers_created']:,} buffers for {weights:,} tensors of weights")
    peak, held = last["bytes_peak"] / 2**30, begun["bytes_live"] / 2**30
    print(f"peak on the device {peak:.2f} GiB, of which weights {held:.2f}")
    good = [
        report(
            "buffers created for the picture",
            f"{made['buffers_created']:,}",
            "≤ 800",
            made["buffers_created"] <= 800,
        ),
        report(
            "bind groups",
            f"{last['bind_groups_created']:,}",
            "≤ 10,000",
            last["bind_groups_created"] <= 10_000,
        ),
        report("pipelines after a stage's first step", f"{late}", "0", late == 0),
        report("memory on the device, from step 2", f"{growth:+.2%}", "flat (± 1 %)", abs(growth) <= 0.01),
    ]
    return all(good)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--prior-steps", type=int, default=60)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    device = gpu()
    name = device.name
    if not given.whole:
        cut_grids(device)
        print("every command's grid is cut to one workgroup")
    networks = [
        network(kind, config, name)
        for kind, config in (
            (CLIPText, TEXT_OF_PRIOR),
            (Prior, PRIOR),
            (CLIPText, TEXT_OF_DECODER),
            (DiffNeXt, DiffNeXtConfig()),
            (PaellaVQ, PaellaVQConfig()),
        )
    ]
    held = [each for module in networks for each in [*module.parameters(), *module.buffers()]]
    size = sum(each.size for each in held)
    print(f"{size:,} weights")
    text, prior, other, decoder, vqgan = networks
    pipe = wg.diffusion.Wuerstchen(
        wg.diffusion.WuerstchenPrior(prompts(), text, prior),
        wg.diffusion.WuerstchenDecoder(prompts(), other, decoder, vqgan),
    )
    found = picture(pipe, device, given)
    if given.json:
        given.json.write_text(json.dumps({"weights": size, "tensors": len(held), "counts": found}, indent=1))
    return 0 if summary(found, len(held), given) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
