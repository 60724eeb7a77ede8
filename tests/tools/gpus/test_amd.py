"""RADV's output of two of our kernels: LLVM's listing of navi31, ACO's of gfx1150, which LLVM 15 lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from webgrad.tools.gpus.listing import Statistics
from webgrad.tools.gpus.table import GPUS

SAMPLES = Path(__file__).parent / "samples"


def parse(text: str, gpu: str) -> Statistics:
    return GPUS[gpu].driver.parse(text, GPUS[gpu])


def sample(gpu: str) -> str:
    return (SAMPLES / f"{gpu}.txt").read_text(encoding="utf-8")


def test_a_product_of_a_vector_on_navi31() -> None:
    made = parse(sample("navi31"), "navi31")
    assert (made.registers, made.spills, made.scratch, made.workgroup_memory) == (24, 0, 0, 4096)
    assert (made.occupancy, made.most, made.lanes) == (32, 32, 64)
    # RADV's own 256 and what fills cache lines in front of loops.
    assert made.instructions == 256 + 13
    assert made.kinds["vector"] == 53
    assert made.loop is not None
    assert (made.loop.instructions, made.loop.multiply_adds) == (24, 4)


def test_sums_on_gfx1150() -> None:
    made = parse(sample("gfx1150"), "gfx1150")
    assert (made.registers, made.occupancy, made.most) == (16, 32, 32)
    assert f"\nInstructions: {made.instructions}\n" in sample("gfx1150")
    assert f"\nVALU: {made.kinds['vector']}\n" in sample("gfx1150")
    assert made.loop is not None
    assert made.loop.multiply_adds == 0
    assert made.loop.kinds["memory"] == 2


def test_a_small_workgroup_has_small_subgroups() -> None:
    text = sample("gfx1150").replace("workgroup_size: 64, 1, 1", "workgroup_size: 8, 4, 1")
    made = parse(text, "gfx1150")
    assert (made.lanes, made.most) == (32, 16)


@pytest.mark.parametrize(
    ("line", "products"),
    [
        ("v_fma_f32 v1, v2, v3, v4                     ; d6130001", 1),
        ("v_fmac_f32_e32 v41, v48, v25                 ; 56523330", 1),
        ("v_mac_f32_e32 v41, v48, v25                  ; 2c523330", 1),
        ("v_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6 ; c8000102", 2),
        ("v_dual_fmac_f32 v1, v2, v3 :: v_dual_mul_f32 v4, v5, v6 ; c8000102", 1),
        ("v_pk_fma_f16 v1, v2, v3, v4                  ; cc0e0001", 2),
        ("v_dot4_i32_iu8 v1, v2, v3, v4                ; cc160001", 4),
        ("v_mad_u32_u24 v1, v2, v3, v4                 ; d60b0001", 0),
        ("v_max_f32_e32 v1, v2, v3                     ; 20020702", 0),
    ],
)
def test_multiply_adds(line: str, products: int) -> None:
    before, stats = sample("navi31").split("\ndisasm:\n")[0], "*** SHADER STATS ***"
    loop = f"\ndisasm:\nBB0:\n\t{line}\n\ts_cbranch_scc1 BB0   ; bfa20000\n"
    made = parse(before + loop + sample("navi31")[sample("navi31").index(stats) :], "navi31")
    assert made.loop is not None
    assert (made.loop.instructions, made.loop.multiply_adds) == (2, products)


@pytest.mark.parametrize("text", ["", "nothing of a shader", "disasm:\n*** SHADER STATS ***\n"])
def test_what_is_no_output_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        parse(text, "navi31")
