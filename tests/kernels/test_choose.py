"""Choices over all profiles: within limits, no feature the device lacks, and only declared variants."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest

from tests.kernels.harness import FULL_GPU, NATIVE_F16, PROFILES
from webgrad.kernels import choose
from webgrad.kernels.choose import Launch
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import Program
from webgrad.wgsl.template import template_names, template_text
from webgrad.wgsl.variants import variant_lines

SMALL_GPU = DeviceProfile("integrated", max_invocations=128)
ALL = {**PROFILES, "native-f16": NATIVE_F16, "full": FULL_GPU, "small": SMALL_GPU}
SIZES = (1, 3, 4, 64, 65, 260, 5000, 100000, 100003)


def every_launch(profile: DeviceProfile) -> Iterator[Launch]:
    """Launches of every op, dtype and kind of size."""
    for op, dtypes in choose.UNARY_OPS.items():
        for dtype in dtypes:
            yield choose.unary(profile, op, dtype, 100, *((2.0,) if op == "scale" else ()))
    for op, dtypes in choose.BINARY_OPS.items():
        for dtype in dtypes:
            yield choose.binary(profile, op, dtype, 100)
    for op, dtypes in choose.BROADCAST_OPS.items():
        for dtype, columns in itertools.product(dtypes, (1, 4, 10)):
            yield choose.binary(profile, op, dtype, 100 * columns, "row", columns)
    for op, dtypes in choose.REDUCE_OPS.items():
        for dtype, rows, columns in itertools.product(dtypes, (1, 100), SIZES):
            yield from choose.reduce(profile, op, dtype, rows, columns)
    for dtype, n in itertools.product(("f32", "f16", "bf16", "i32", "u32"), SIZES):
        yield from choose.dot(profile, dtype, n)
    yield choose.fill(profile, 100, 0)
    for dtype in ("f32", "f16", "bf16"):
        for rows, columns in itertools.product((1, 100), (4, 7, 100, 101, 20000)):
            yield choose.softmax(profile, dtype, rows, columns)
        for m, n, k in itertools.product((1, 2, 3, 4, 5, 8, 9, 100), (4, 7, 260, 1001), (4, 5)):
            for transposed in (False, True):
                yield choose.matmul(profile, dtype, m, n, k, transposed=transposed)


def key(program: Program) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return program.label.split()[0], program.entry, tuple(sorted(program.defines))


# Templates that are chosen by others than `choose`, and tested with them.
ELSEWHERE = frozenset(
    {
        "sort.pwgsl",  # test_ordering.py
        "scatter.pwgsl",
        "scatters.pwgsl",  # test_scattering.py
        "fourier.pwgsl",  # test_fourier.py
        "attention.pwgsl",  # tests/lower/test_attention.py
        "attention_tile.pwgsl",
        "quantised.pwgsl",  # tests/lower/test_quantised.py
    }
)


def declared() -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """The variants of the templates' headers, without loading them."""
    return {
        (name, entry, tuple(sorted(defines.items())))
        for name in template_names()
        if name not in ELSEWHERE
        for line in variant_lines(template_text(name), name)
        for entry in line.entries
        for defines in line.combinations()
        if "SIDE" not in defines  # smaller tiles are a choice of generated products: lower/forms.py
    }


@pytest.mark.parametrize("name", ALL)
def test_launches_are_within_the_device(name: str) -> None:
    profile = ALL[name]
    for launch in every_launch(profile):
        x, y, z = launch.program.workgroup_size
        assert x * y * z <= profile.max_invocations
        assert max(launch.grid) <= profile.max_workgroups
        assert len(launch.params) == launch.program.params_size
        for program in launch.programs:
            assert program.requires <= profile.features
            assert len(program.bindings) <= profile.max_storage_buffers


def test_chosen_programs_are_exactly_the_declared_variants() -> None:
    """What is chosen ships and is compiled in the tests; what ships is chosen somewhere."""
    four_lanes = DeviceProfile("software", frozenset({"subgroups"}), 4)
    chosen = {
        key(program)
        for profile in (*ALL.values(), four_lanes)
        for launch in every_launch(profile)
        for program in launch.programs
    }
    assert chosen - declared() == set()
    assert declared() - chosen == set()


@pytest.mark.parametrize("name", ALL)
def test_in_place_variants_drop_the_output(name: str) -> None:
    for launch in every_launch(ALL[name]):
        inputs = launch.program.bindings[:-1]
        assert launch.program.bindings[-1].access == "read_write"
        for target, program in launch.in_place:
            assert program is not None
            assert [b.name for b in program.bindings] == [b.name for b in inputs]
            assert [i for i, b in enumerate(program.bindings) if b.access == "read_write"] == [target]
            assert program.params == launch.program.params
            assert program.workgroup_size == launch.program.workgroup_size


def test_asking_again_gives_the_same_object() -> None:
    profile = PROFILES["software"]
    assert choose.matmul(profile, "f32", 8, 8, 8) is choose.matmul(profile, "f32", 8, 8, 8)
    first, second = (choose.unary(profile, "scale", "f32", 8, value) for value in (1.0, 2.0))
    assert first.program is second.program
    assert struct.unpack("<3If", second.params)[3] == 2.0
