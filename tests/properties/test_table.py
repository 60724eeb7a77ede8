"""Every op of the table × every dtype it claims × six layouts, against NumPy, on the cpu and on a GPU.

The cases are made from the rows: a new map row is tested without a word here. Floats with a tolerance are
compared with NumPy in float64, all others with the row's own function, exactly. Drivers compile slowly, so
on a GPU `make test` tries every op in one or two of its dtypes, and `make test-long` in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tests.properties.cases import STANDS_FOR, THOROUGH, cases_of, follows
from tests.properties.helpers import ALL_BUT_NONE, AnyDevice, Case, differences, gpu, on
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.errors import DTypeError
from webgrad.evaluate.evaluate import evaluate
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE
from webgrad.runtime.webgpu import Device

pytestmark = pytest.mark.property
SOURCES = ("leaf", "scalar")  # values, not ops: every case is made of them
OPS = [name for name in TABLE if name not in SOURCES]
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


def types_of(op: Op, device: AnyDevice, whole: bool = True) -> list[DType]:
    """The dtypes of an op on a device; if not the whole, every eighth from the op's own turn on, and for an
    op that stands for others one of those in which layouts and shapes come in all combinations.
    """
    types = [
        each for each in (*dtypes.REAL, *dtypes.COMPLEX) if claims(op, each) and offered(op, each, device)
    ]
    if whole or not types:
        return types
    turn = list(TABLE).index(op.name)
    chosen = list(types[turn % min(8, len(types)) :: 8])
    if op.name in STANDS_FOR.get(op.kind, ()):
        chosen.append(THOROUGH[turn % len(THOROUGH)])
    return [each for each in types if each in chosen]


@cache
def maps_together(arity: int, dtype: DType, whole: bool) -> list[str]:
    """What is wrong with any of the maps that another op stands for, on a GPU: drivers compile slowly, so all
    of them are one evaluation, in which those of the same operands are one kernel.
    """
    device = gpu()
    ops = [op for op in TABLE.values() if (op.kind, op.arity) == ("map", arity) and follows(op, device)]
    ops = [op for op in ops if dtype in types_of(op, device, whole)]

    def build() -> Iterator[Case]:
        for cases in zip(*[cases_of(op, dtype, device) for op in ops], strict=True):
            yield from cases

    return differences(build, may_flush=True)


def check(op: Op, device: AnyDevice, whole: bool) -> None:
    types = types_of(op, device, whole)

    def build() -> Iterator[Case]:
        for dtype in types:
            yield from cases_of(op, dtype, device)

    if op.kind == "map" and follows(op, device):
        found = [line for dtype in types for line in maps_together(op.arity, dtype, whole)]
        wrong = [line for line in found if line.startswith((f"{op.name}, ", ALL_BUT_NONE))]
    else:
        wrong = differences(build, may_flush=isinstance(device, Device))
    assert not wrong, f"{len(wrong)} cases on {device.name}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("name", OPS)
def test_op(name: str) -> None:
    check(TABLE[name], on("cpu"), whole=True)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPS)
def test_op_on_a_gpu(name: str) -> None:
    """In some dtypes, others for each op."""
    check(TABLE[name], gpu(), whole=False)


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.parametrize("name", OPS)
def test_op_on_a_gpu_in_every_dtype(name: str) -> None:
    check(TABLE[name], gpu(), whole=True)


@pytest.mark.gpu
def test_every_op_and_every_dtype_is_in_the_part_that_is_tried() -> None:
    some = {name: types_of(TABLE[name], gpu(), whole=False) for name in OPS}
    assert [name for name in OPS if types_of(TABLE[name], gpu()) and not some[name]] == []
    for dtype in {each for name in OPS for each in types_of(TABLE[name], gpu())} & set(dtypes.REAL):
        assert sum(dtype in types for types in some.values()) >= 3, dtype


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
