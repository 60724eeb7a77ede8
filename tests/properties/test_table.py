"""Every op of the table × every dtype it claims × six layouts, against NumPy, on the cpu and on a GPU.

The cases are made from the rows: a new map row is tested without a word here. Floats with a tolerance are
compared with NumPy in float64, all others with the row's own function, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tests.properties.cases import cases_of, follows
from tests.properties.helpers import ALL_BUT_NONE, AnyDevice, Case, differences, gpu, on
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.errors import DTypeError
from webgrad.evaluate.evaluate import evaluate
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE
from webgrad.runtime.webgpu import Device

pytestmark = pytest.mark.property
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]
SOURCES = ("leaf", "scalar")  # values, not ops: every case is made of them
# ops that are there for one dtype
ONLY = dict.fromkeys(("random_bits", "decode", "decode_rows"), dtypes.uint32)
ONLY |= {"matmul_blocks": dtypes.float32}


def claims(op: Op, dtype: DType) -> bool:
    """Whether a row offers an op for a dtype."""
    if op.name == "as_complex" or op.kind == "fft":
        return dtype in map(dtypes.part_of, dtypes.COMPLEX)
    return dtype is ONLY[op.name] if op.name in ONLY else dtype.kind in op.types


def offered(op: Op, dtype: DType, device: AnyDevice) -> bool:
    """Whether a device can do it: the adapter has the dtype, and the row has WGSL for it."""
    if not isinstance(device, Device):
        return True
    if op.name == "sort_values":
        return False  # the cpu's own
    if dtype.feature and dtype.feature not in device.features:
        return False
    if op.name == "sort_order" or op.kind == "attend":
        return bool(dtype.itemsize <= 4)
    return op.kind != "map" or isinstance(op.wgsl, str) or dtype.compute in op.wgsl


@cache
def maps_together(arity: int, dtype: DType) -> list[str]:
    """What is wrong with any of the maps that another op stands for, on a GPU: drivers compile slowly, so all
    of them are one evaluation, in which those of the same operands are one kernel.
    """
    device = gpu()
    ops = [op for op in TABLE.values() if (op.kind, op.arity) == ("map", arity) and follows(op, device)]
    ops = [op for op in ops if claims(op, dtype) and offered(op, dtype, device)]

    def build() -> Iterator[Case]:
        for cases in zip(*[cases_of(op, dtype, device) for op in ops], strict=True):
            yield from cases

    return differences(build, may_flush=True)


@pytest.mark.parametrize("device_name", DEVICES)
@pytest.mark.parametrize("name", [name for name in TABLE if name not in SOURCES])
def test_op(name: str, device_name: str) -> None:
    op, device = TABLE[name], on(device_name)
    types = [
        dtype for dtype in (*dtypes.REAL, *dtypes.COMPLEX) if claims(op, dtype) and offered(op, dtype, device)
    ]

    def build() -> Iterator[Case]:
        for dtype in types:
            yield from cases_of(op, dtype, device)

    if op.kind == "map" and follows(op, device):
        found = [line for dtype in types for line in maps_together(op.arity, dtype)]
        wrong = [line for line in found if line.startswith((f"{name}, ", ALL_BUT_NONE))]
    else:
        wrong = differences(build, may_flush=device_name != "cpu")
    assert not wrong, f"{len(wrong)} cases on {device_name}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.types != "biuf" and op.arity])
def test_unclaimed_dtypes_are_refused_at_the_call(name: str) -> None:
    op = TABLE[name]
    for dtype in dtypes.REAL:
        if not claims(op, dtype):
            with pytest.raises(DTypeError, match=dtype.name):
                next(cases_of(op, dtype, on("cpu")))


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.kind in ("map", "sort", "attend")])
def test_what_gpus_lack_is_refused_by_name(name: str) -> None:
    op = TABLE[name]
    for dtype in dtypes.REAL:
        if claims(op, dtype) and not offered(op, dtype, gpu()):
            with pytest.raises(DTypeError, match=f"{dtype.name}|{dtype.feature}"):
                evaluate([next(cases_of(op, dtype, gpu())).node])
