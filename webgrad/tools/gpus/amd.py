"""What RADV, Mesa's driver of AMD's GPUs, prints of a kernel under RADV_DEBUG=shaders,shaderstats.

In: its output for one kernel. Out: `Statistics`. The listing is LLVM's, or for GPUs that LLVM does not know
ACO's own, which names instructions as LLVM does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from .listing import Instruction, Kind, Statistics, count_kinds, hot_loop

__all__ = ["parse_radv"]

# The first that the name begins with.
_KINDS: Mapping[str, Kind] = {
    "v_": "vector",
    "ds_": "workgroup",
    "buffer_": "memory",
    "global_": "memory",
    "flat_": "memory",
    "scratch_": "memory",
    "s_load": "memory",
    "s_buffer_load": "memory",
    "s_wait": "wait",
    "s_delay_alu": "wait",
    "s_nop": "wait",
    "s_clause": "wait",
    "s_inst_prefetch": "wait",
    "s_barrier": "branch",
    "s_branch": "branch",
    "s_cbranch": "branch",
    "s_endpgm": "branch",
    "s_sendmsg": "branch",
}  # and anything else is scalar
_LABEL = re.compile(r"(BB\d+):?")
# "v_add_f32_e32 v1, v2, v3 ; 06060702", or ACO's " v1: %40:v[1] = v_add_f32 %38:v[2], %39:v[3]"
_INSTRUCTION = re.compile(r"\s+(?:(?:[sv]\d+b?:|,)[^=]* = )?([a-z]\w+)(.*)")
_REPEATED = re.compile(r"\s+\(then repeated (\d+) times\)")
_MULTIPLY_ADD = re.compile(r"\bv_(?:dual_)?(pk_)?(?:fma|mad|mac)\w*?_f(?:16|32|64)")
_DOT = re.compile(r"\bv_(?:dual_)?dot(\d)\w*")  # dot2 has two products, dot4 four
_TARGET = re.compile(r"\bBB\d+")
_FIGURE = re.compile(r"^([A-Z][\w -]*): (\d+)$", re.MULTILINE)
_WORKGROUP = re.compile(r"^workgroup_size: (\d+), (\d+), (\d+)$", re.MULTILINE)


def parse_radv(text: str, sizes: Sequence[int], most: int) -> Statistics:
    """The statistics of the last kernel in the output, of a GPU with subgroups of these sizes.

    `most` is how many of the least size a SIMD holds. RADV counts larger ones as several.
    """
    figures = {name: int(value) for name, value in _FIGURE.findall(text[text.rindex("*** SHADER STATS") :])}
    listing = list(_listing(text))
    instructions = [each for each in listing if isinstance(each, Instruction)]
    lanes = _lanes(text, sizes)
    return Statistics(
        registers=figures["VGPRs"],
        spills=figures["Spilled VGPRs"] + figures["Spilled SGPRs"],
        scratch=figures["Scratch size"],
        workgroup_memory=figures["LDS size"],
        occupancy=figures["Subgroups per SIMD"],
        most=most * lanes // sizes[0],
        lanes=lanes,
        instructions=len(instructions),
        kinds=count_kinds(instructions),
        loop=hot_loop(listing),
    )


def _listing(text: str) -> Iterator[str | Instruction]:
    lines = text[text.rindex("\ndisasm:") : text.rindex("*** SHADER STATS")].splitlines()
    last: Instruction | None = None
    for line in lines:
        if label := _LABEL.fullmatch(line):
            yield label[1]
        elif last is not None and (again := _REPEATED.match(line)):
            yield from [last] * int(again[1])
        elif found := _INSTRUCTION.match(line):
            last = _instruction(found[1], found[1] + found[2])
            yield last


def _instruction(name: str, text: str) -> Instruction:
    kind: Kind = next((kind for start, kind in _KINDS.items() if name.startswith(start)), "scalar")
    products = sum(2 if packed else 1 for packed in _MULTIPLY_ADD.findall(text))
    products += sum(map(int, _DOT.findall(text)))
    target = _TARGET.search(text) if kind == "branch" else None
    return Instruction(kind, products, target[0] if target else "")


def _lanes(text: str, sizes: Sequence[int]) -> int:
    """RADV takes the least size where the whole workgroup fits into it, else the largest."""
    threads = math.prod(map(int, _WORKGROUP.findall(text)[-1]))
    return sizes[0] if threads <= sizes[0] else sizes[-1]
