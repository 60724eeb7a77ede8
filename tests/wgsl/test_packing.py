"""Params as bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.errors import LaunchError
from webgrad.wgsl import program_from_source
from webgrad.wgsl.packing import Packer

FIELDS = (("n", "u32", 0), ("scale", "vec3<f32>", 16), ("shift", "i32", 28))
PACKER = Packer("kernel", FIELDS, 32)


def test_bytes_lie_where_wgsl_reads_them() -> None:
    packed = PACKER.pack(7, (1.0, 2.0, 3.0), -1)
    assert packed == struct.pack("<I12xfffi", 7, 1.0, 2.0, 3.0, -1)
    assert PACKER.size == len(packed) == 32


def test_no_fields_give_no_bytes() -> None:
    assert Packer("kernel", (), 0).pack() == b""


def test_numpy_numbers_are_numbers() -> None:
    packer = Packer("kernel", (("n", "u32", 0), ("s", "f32", 4)), 8)
    assert packer.pack(np.uint32(5), np.float32(0.5)) == struct.pack("<If", 5, 0.5)
    assert packer.pack(np.int64(5), 2) == struct.pack("<If", 5, 2.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((-1, (0, 0, 0), 0), "kernel: param `n` is -1; u32 holds 0 to 4294967295"),
        ((2**32, (0, 0, 0), 0), "param `n` is 4294967296; u32 holds"),
        ((0, (0, 0, 0), 2**31), "param `shift` is 2147483648; i32 holds -2147483648 to 2147483647"),
        ((1.5, (0, 0, 0), 0), "param `n` is 1.5; u32 takes integers"),
        ((0, (0, 0), 0), r"param `scale` is \(0, 0\); vec3<f32> takes 3 numbers"),
        ((0, 1.0, 0), "param `scale` is 1.0; vec3<f32> takes 3 numbers"),
        ((0, (0, "a", 0), 0), "vec3<f32> takes numbers"),
        ((0, (0, 1e39, 0), 0), "vec3<f32> holds numbers up to 3.4e38"),
        (((1, 2), (0, 0, 0), 0), r"param `n` is \(1, 2\); u32 takes integers"),
        ((0, (0, 0, 0)), r"kernel: 2 params for the fields \(n, scale, shift\)"),
    ],
)
def test_what_does_not_fit_is_named(values: tuple[int, ...], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        PACKER.pack(*values)


def test_scalar_packers_find_the_same_mistakes() -> None:
    packer = Packer("kernel", (("n", "u32", 0), ("s", "f32", 4)), 8)
    with pytest.raises(LaunchError, match="param `n` is -1"):
        packer.pack(-1, 0.0)
    with pytest.raises(LaunchError, match="param `s` is 1e\\+39"):
        packer.pack(1, 1e39)
    with pytest.raises(LaunchError, match="3 params"):
        packer.pack(1, 1.0, 2)


TYPES = {"i32": "i4", "u32": "u4", "f32": "f4"}


@pytest.mark.property
@given(
    st.lists(
        st.sampled_from([*TYPES, *(f"vec{n}<{t}>" for n in (2, 3, 4) for t in TYPES)]), min_size=1, max_size=9
    )
)
def test_any_struct_packs_as_numpy_would(types: list[str]) -> None:
    members = ", ".join(f"f{i}: {one}" for i, one in enumerate(types))
    program = program_from_source(
        f"struct P {{ {members} }} var<uniform> p: P; @compute @workgroup_size(1) fn main() {{ _ = p.f0; }}"
    )
    names, formats, offsets, values = [], [], [], []
    for i, one in enumerate(program.params):
        count = int(one.type[3]) if one.type.startswith("vec") else 1
        code = TYPES[one.type[5:-1] if count > 1 else one.type]
        names.append(one.name)
        formats.append(f"({count},){code}" if count > 1 else code)
        offsets.append(one.offset)
        values.append(tuple(range(i, i + count)) if count > 1 else i)
    dtype = np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": program.params_size}
    )
    expected = np.zeros(1, dtype)
    for name, value in zip(names, values, strict=True):
        expected[name] = value
    packer = Packer(
        "kernel", [(one.name, one.type, one.offset) for one in program.params], program.params_size
    )
    assert packer.pack(*values) == expected.tobytes()
