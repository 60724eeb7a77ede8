"""What adapters say of themselves, and what the doctor says of that."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from webgrad.config import Settings
from webgrad.runtime.adapters import FEATURE_NAMES, PROMISED, AdapterInfo
from webgrad.tools.probes import adapter

GOOD = AdapterInfo(
    device="webgpu:0",
    index=0,
    name="Radeon RX",
    vendor="AMD",
    backend="vulkan",
    type="discrete",
    driver="Mesa 25.0.7",
    features=frozenset(FEATURE_NAMES),
    raw_features=frozenset(FEATURE_NAMES.values()),
    limits=MappingProxyType({name: PROMISED[name] for name in adapter.LIMITS}),
)


def device(**changed: Any) -> Any:
    info = dataclasses.replace(GOOD, **changed)
    return SimpleNamespace(info=info, features=info.features, budget=1 << 30, settings=Settings())


def test_every_feature_has_its_words() -> None:
    assert set(adapter.FEATURES) == set(FEATURE_NAMES)


def test_a_good_adapter() -> None:
    for probe in (adapter.driver, adapter.limits, adapter.features):
        assert {each.verdict for each in probe(device())} == {"ok"}


def test_an_old_mesa_is_a_problem_of_software_only() -> None:
    old = "Mesa 22.3.6 (LLVM 15.0.6)"
    assert [each.verdict for each in adapter.driver(device(driver=old))] == ["ok", "ok"]
    first, second = adapter.driver(device(driver=old, type="software"))
    assert (first.verdict, second.verdict) == ("note", "problem")
    assert second.text.startswith("Mesa 22.3 is about ten times slower")
    assert second.advice


def test_opengl_is_a_note() -> None:
    [found] = adapter.driver(device(backend="opengl", driver=""))
    assert found.verdict == "note"
    assert "no version told" in found.text


def test_limits_below_what_is_promised() -> None:
    limits = dict(GOOD.limits) | {"max-storage-buffers-per-shader-stage": 4}
    [found] = adapter.limits(device(limits=limits))
    assert (found.verdict, found.figures["max-storage-buffers-per-shader-stage"]) == ("note", 4)
    assert "bindings below 8" in found.text
    assert "fuse less" in found.advice


@pytest.mark.parametrize("name", [name for name, row in adapter.FEATURES.items() if row[1]])
def test_a_feature_that_is_missing_or_switched_off(name: str) -> None:
    without = GOOD.features - {name}
    off = next(each for each in adapter.features(device(features=without)) if each.name == name)
    assert (off.verdict, off.figures["offered"]) == ("note", True)
    raw = GOOD.raw_features - {FEATURE_NAMES[name]}
    missing = next(
        each for each in adapter.features(device(features=without, raw_features=raw)) if each.name == name
    )
    assert (missing.text, missing.figures["offered"]) == ("not offered", False)
    assert missing.advice


@pytest.mark.parametrize(("budget", "verdict"), [(1 << 20, "note"), (1 << 30, "ok"), (1 << 60, "note")])
def test_the_memory_budget(budget: int, verdict: str) -> None:
    opened = device()
    opened.budget = budget
    assert adapter.memory(opened).verdict == verdict
