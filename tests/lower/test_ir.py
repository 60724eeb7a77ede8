"""The grammar of kernels: the verifier refuses one bad kernel for each rule; the printer shows a good one."""

from __future__ import annotations

import pytest

from tests.graph.helpers import apply, value
from tests.lower.broken import BAD, Bad, no_such_buffer
from tests.lower.helpers import copy_kernel, kernel_of, lowered
from tests.schedule.graphs import tall_stack, transformer_block
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.errors import WebgradError
from webgrad.lower.ir import (
    KernelError,
    show,
    verify,
)


@pytest.mark.parametrize(("bad", "message"), BAD.items(), ids=[each.__name__ for each in BAD])
def test_the_verifier_refuses(bad: Bad, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        verify(bad())
    assert "test" in str(caught.value)  # names the kernel


def test_a_kernel_error_is_one_of_ours_and_shows_the_kernel() -> None:
    assert issubclass(KernelError, WebgradError)
    with pytest.raises(KernelError, match="kernel test: 1 workgroups of 8"):
        verify(no_such_buffer())


def test_good_kernels_pass() -> None:
    verify(copy_kernel())
    verify(kernel_of())


def test_generated_kernels_pass(profile: DeviceProfile) -> None:
    from tests.graph.helpers import tensor

    made = lowered(tall_stack(tensor(12, 33), 6), profile=profile)
    made += lowered(transformer_block(tensor(1, 8, 16), heads=2, hidden=24), profile=profile)
    assert len(made) > 10
    for kernel in made:
        verify(kernel)


# Printing


@pytest.mark.golden
def test_a_small_kernel_is_shown() -> None:
    assert show(copy_kernel()).splitlines() == [
        "kernel test: 1 workgroups of 8",
        "  in %0: float32[64]  (binding 0)",
        "  out %1: float32[64]  (binding 1)",
        "  v0: bool = compare(local, 16) <",
        "  if(v0)",
        "    v1: f32x4 = load(local) %0",
        "    store(local, v1) %1",
        "  end_if",
    ]
    assert str(copy_kernel()) == show(copy_kernel())


@pytest.mark.golden
def test_a_generated_kernel_is_shown() -> None:
    (kernel,) = lowered(apply("add", apply("multiply", value(4, 100), 2.0), value(100)))
    lines = show(kernel).splitlines()
    assert lines[0].startswith("kernel map_multiply_add: 1 workgroups of 8")
    body = [line.strip() for line in lines if "=" in line]
    assert sum(" multiply" in line for line in body) == 1
    assert sum(" add" in line for line in body) == 1
    assert sum("load(" in line for line in body) == 2
    assert "float32 → float16" in show(lowered(apply("add", cast_of(value(4)), cast_of(value(4))))[0])


def cast_of(x: object) -> object:
    from webgrad.ops import primitives

    return primitives.cast(x, dtypes.float16)  # type: ignore[arg-type]


def test_a_template_is_shown_with_its_holes() -> None:
    from webgrad.ops import primitives

    (kernel,) = lowered(primitives.contract(value(8, 12), value(12, 16)))
    text = show(kernel)
    assert "template matmul.pwgsl" in text
    assert "k=12" in text
    for hole in (
        "hole_a_row(batch, row)",
        "hole_a(stage0, stage1, step)",
        "hole_b(",
        "hole_c(batch, row, column, v)",
    ):
        assert f"hole {hole}" in text
    assert text.count("return v") == 4  # two stages, and what they give
