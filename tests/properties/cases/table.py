"""Which cases an op has: `BUILDERS` has an entry for each kind of op, or one op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.properties.cases.conversions import bitcasts, casts, iotas, views
from tests.properties.cases.folds import attentions, contractions, reduces, scans
from tests.properties.cases.indexed import gathers, scatters, sorts
from tests.properties.cases.maker import Cases, Maker
from tests.properties.cases.maps import maps
from tests.properties.cases.movement import concats, moves
from tests.properties.helpers import (
    AnyDevice,
    Case,
)
from tests.properties.ordered import ORDERED
from tests.properties.packed import PACKED
from tests.properties.transforms import TRANSFORMS
from webgrad.dtypes import DType
from webgrad.graph.op import Op
from webgrad.ops import primitives

__all__ = ["BUILDERS", "cases_of"]


BUILDERS: dict[str, Callable[[Maker], Cases]] = {
    "map": maps,
    "cast": casts,
    "bitcast": bitcasts,
    "iota": iotas,
    "move": moves,
    "view": views,
    "concat": concats,
    "gather": gathers,
    "scatter": scatters,
    "sort": sorts,
    "reduce": reduces,
    "scan": scans,
    "contract": contractions,
    **ORDERED,
    **PACKED,
    **TRANSFORMS,
    "attend": attentions,
}


def cases_of(op: Op, dtype: DType, device: AnyDevice) -> Cases:
    """The cases of one op and dtype on a device."""
    build = BUILDERS.get(op.name) or BUILDERS[op.kind]
    for at, case in enumerate(build(Maker(op, dtype, device))):
        yield transposed(case) if at % 3 == 2 and case.wanted[0].ndim > 1 else case


def transposed(case: Case) -> Case:
    """Its result with the axes in reverse, as of a transpose behind the op."""
    axes = tuple(reversed(range(case.wanted[0].ndim)))
    slack = case.slack.transpose() if isinstance(case.slack, np.ndarray) and case.slack.ndim else case.slack
    return replace(
        case,
        label=f"{case.label}, transposed",
        node=primitives.permute(case.node, axes),
        wanted=tuple(each.transpose() for each in case.wanted),
        slack=slack,
    )
