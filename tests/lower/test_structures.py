"""Bundles of one structure: what is lowered once is what each would have become."""

from __future__ import annotations

import pytest

from tests.graph.helpers import apply, tensor, value
from tests.schedule.graphs import SOFTWARE, adam_step, fused_block, planned, transformer_block
from webgrad.device_profile import DeviceProfile
from webgrad.kernels.launch import Launch
from webgrad.lower import compile as compiling
from webgrad.lower.compile import compile_bundle, compile_schedule
from webgrad.lower.structures import structure
from webgrad.tensor import Tensor


def stacked(block: object) -> Tensor:
    x = tensor(1, 32, 64)
    for _ in range(3):
        x = block(x, 4, 128)  # type: ignore[operator]
    return x


def told(launch: Launch) -> tuple[object, ...]:
    """All that a plan takes from a launch."""
    return (
        launch.program,
        launch.bound,
        launch.scalars,
        launch.front.format,
        launch.params,
        launch.more,
        launch.grid,
        launch.writes,
        launch.in_place,
        launch.kernel.buffers,
        launch.kernel.scalars,
    )


@pytest.mark.parametrize("block", [fused_block, transformer_block])
def test_layers_that_are_alike_have_the_launches_they_would_have_alone(
    block: object, profile: DeviceProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(stacked(block), profile=profile)
    lowered = []

    def counted(*args: object, **options: object) -> list[Launch]:
        lowered.append(args[1])
        return compile_bundle(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(compiling, "compile_bundle", counted)
    made = compile_schedule(plan, profile)
    assert len(lowered) < len(plan.bundles) / 2
    for groups, launches in made:
        alone = compile_bundle(plan.graph, groups, profile)
        assert [told(each) for each in launches] == [told(each) for each in alone]


def test_a_result_that_takes_its_leafs_storage_is_another_structure() -> None:
    plan = planned(apply("exp", value(64)), apply("exp", value(64)), fuse=False)
    first, second = plan.groups
    codes = [structure(plan.graph, [each]) for each in (first, second)]
    assert codes[0][0] == codes[1][0]
    assert codes[0][1] != codes[1][1]
    plan.graph.donations = {first.outputs[0]: first.reads[0]}
    assert structure(plan.graph, [first])[0] != codes[0][0]
    launches = [each for _, made in compile_schedule(plan, SOFTWARE) for each in made]
    assert [len(each.in_place) for each in launches] == [1, 0]


def test_an_optimisers_step_is_as_it_would_be_alone() -> None:
    plan = planned(*adam_step())
    for groups, launches in compile_schedule(plan, SOFTWARE):
        alone = compile_bundle(plan.graph, groups, SOFTWARE)
        assert [told(each) for each in launches] == [told(each) for each in alone]
