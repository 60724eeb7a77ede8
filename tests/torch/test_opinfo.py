"""torch's own samples: what webgrad computes of them is what torch computes, as far as webgrad has it.

tests/torch/counts.json says how many samples, and gradients of samples, were compared for each entry: fewer
are a failure. `python -m tests.torch.opinfo_counts` writes it anew.
"""

from __future__ import annotations

import pytest

from tests.torch import report
from tests.torch.moduleinfo import MODULES, counterpart, examined_module
from tests.torch.opinfo import DTYPES, OPS, examined, function
from tests.torch.report import FLOATS, MOST, MOST_OF_MODULES, counts
from tests.torch.samples import Tally

pytestmark = pytest.mark.property
COUNTS = counts()


def check(kind: str, name: str, tally: Tally) -> None:
    """Nothing is wrong, and no less is compared than before."""
    report.add(kind, name, tally)
    assert not tally.wrong, "\n".join(tally.wrong)
    compared, gradients = COUNTS[kind].get(name, (0, 0))
    assert tally.compared >= compared, f"{tally.compared} samples are taken, {compared} were: {tally.refused}"
    assert tally.gradients >= gradients, f"{tally.gradients} gradients, {gradients} were: {tally.refused}"


@pytest.mark.parametrize("name", [name for name in OPS if function(name)])
def test_a_function_gives_what_torchs_does(name: str) -> None:
    check("functions", name, examined(name, MOST, DTYPES))


@pytest.mark.parametrize("name", [name for name in MODULES if counterpart(name)])
def test_a_module_gives_what_torchs_does(name: str) -> None:
    check("modules", name, examined_module(name, MOST_OF_MODULES, FLOATS))


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in OPS if function(name)][::2])  # drivers compile slowly
def test_a_function_on_a_gpu_gives_what_torchs_does(name: str) -> None:
    tally = examined(name, 1, FLOATS[:1], "webgpu")
    report.add("functions on a GPU", name, tally)
    assert not tally.wrong, "\n".join(tally.wrong)


@pytest.mark.parametrize(("kind", "there"), [("functions", function), ("modules", counterpart)])
def test_nothing_is_gone(kind: str, there: object) -> None:
    assert callable(there)
    assert [name for name in COUNTS[kind] if not there(name)] == []
