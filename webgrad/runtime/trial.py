"""A GPU's trial at its first use: whether it computes right numbers, and how many lanes its subgroups have.

In: an open GPU. Out: a `Trial`. One that went well is kept on disk by adapter and driver, so that a machine
does this once; one that did not is made again by the next process, which may have another driver.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import cache_path
from ..errors import WebgradError
from ..wgsl import Binding, Program
from .adapters import AdapterInfo
from .kept_files import write_whole

if TYPE_CHECKING:
    from .webgpu import Device

__all__ = ["Trial", "is_tried", "trial_of"]

FORMAT = 1  # of what is kept; another number has every adapter tried again
THREADS = (32, 64, 256)  # of a workgroup: compilers may choose the size of subgroups by it
TEXT = """@group(0) @binding(0) var<storage, read> given: array<u32>;
@group(0) @binding(1) var<storage, read_write> found: array<u32>;
@compute @workgroup_size({threads})
fn trial(@builtin(local_invocation_index) at: u32{builtin}) {{
    found[2u * at] = given[at] * 3u + 1u;
    found[2u * at + 1u] = {size};
}}
"""
# (vendor's number, a word of the driver's text): whose compilers give all kernels subgroups of one size, as
# long as a workgroup fills one. Intel's and Qualcomm's choose for each kernel, AMD's own on RDNA, too.
ONE_SIZE = ((0x10DE, ""), (0x106B, ""), (0x1002, "Mesa"), (0x1002, "radv"))


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial found. `lanes` of a subgroup is 0 where it is not the same for every kernel."""

    problem: str  # "": numbers are right
    lanes: int


def is_tried(info: AdapterInfo) -> bool:
    """Whether an adapter has trials: a program that plays a GPU has none, nor has what a browser offers."""
    return not info.software and info.backend != "browser"


def trial_of(device: Device) -> Trial:
    """The trial of a GPU: a kept one, or made now."""
    folder = _folder(device)
    key = _key(device)
    if folder is not None and (kept := _read(folder / _name(key), key)) is not None:
        return kept
    made = _made(device)
    if folder is not None and not made.problem:
        text = json.dumps({"format": FORMAT, "lanes": made.lanes, "key": key}, indent=1)
        with suppress(OSError):  # then every process makes its own
            write_whole(folder, _name(key), text)
    return made


def _made(device: Device) -> Trial:
    sizes: dict[int, set[int]] = {}  # of subgroups, by the threads of the workgroup
    for threads in THREADS:
        try:
            problem, sizes[threads] = _run(device, threads)
        except WebgradError as error:
            problem = f"its first kernel failed: {error}"
        if problem:
            return Trial(problem, 0)
    return Trial("", _lanes(device.info, sizes))


def _run(device: Device, threads: int) -> tuple[str, set[int]]:
    """What is wrong with a kernel's numbers, and the sizes of its subgroups."""
    numbers = [at * 2654435761 % 2**32 for at in range(threads)]
    pipeline = device.pipeline(_program(threads, "subgroups" in device.features))
    found = device.compute(pipeline, [device.upload(array("I", numbers))], threads * 8, label="trial")
    given = array("I")
    given.frombytes(bytes(device.read(found)))
    expected = [(number * 3 + 1) % 2**32 for number in numbers]
    wrong = [pair for pair in zip(given[::2], expected, strict=True) if pair[0] != pair[1]]
    if wrong:
        first = f"{wrong[0][0]} in place of {wrong[0][1]}"
        return (
            f"{len(wrong)} of {threads} numbers of its first kernel are wrong, {first} to begin with",
            set(),
        )
    return "", set(given[1::2])


def _program(threads: int, subgroups: bool) -> Program:
    builtin = ", @builtin(subgroup_size) size: u32" if subgroups else ""
    text = TEXT.format(threads=threads, builtin=builtin, size="size" if subgroups else "0u")
    return Program(
        label="trial",
        text=text,
        entry="trial",
        bindings=(
            Binding("given", "read", "array<u32>", 4, 4),
            Binding("found", "read_write", "array<u32>", 4, 4),
        ),
        params=(),
        params_size=0,
        workgroup_size=(threads, 1, 1),
        requires=frozenset({"subgroups"} if subgroups else ()),
        origins=tuple(("trial", line) for line in range(1, text.count("\n") + 1)),
        defines=(),
        uses_array_length=False,
    )


def _lanes(info: AdapterInfo, sizes: dict[int, set[int]]) -> int:
    """The one size of all kernels whose workgroups fill a subgroup; 0 where there is none."""
    if not any(info.vendor_id == vendor and word in info.driver for vendor, word in ONE_SIZE):
        return 0
    largest = max(sizes[THREADS[-1]])
    alike = all(found == {largest} for threads, found in sizes.items() if threads >= largest)
    return largest if alike else 0


# What is kept


def _folder(device: Device) -> Path | None:
    cache = device.settings.cache or cache_path()
    return None if cache is None else cache / "adapters"


def _key(device: Device) -> dict[str, Any]:
    info = device.info
    return {
        "name": info.name,
        "backend": info.backend,
        "vendor": info.vendor_id,
        "driver": info.driver,
        "subgroups": "subgroups" in device.features,
    }


def _name(key: dict[str, Any]) -> str:
    return f"{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]}.json"


def _read(path: Path, key: dict[str, Any]) -> Trial | None:
    """What is kept; None where that is nothing, damaged, or another adapter's."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        good = table["format"] == FORMAT and table["key"] == key and type(table["lanes"]) is int
        return Trial("", table["lanes"]) if good and 0 <= table["lanes"] <= 128 else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
