"""Counters: what is counted, reset, and printed."""

from __future__ import annotations

import pytest

from tests.runtime.helpers import Bench, floats
from webgrad.runtime.stats import FLUSH_CAUSES, Counters, Stats, readable_bytes

NAMES = {
    "commands",
    "dispatches",
    "submissions",
    "pipelines_compiled",
    "bind_groups_created",
    "bind_groups_reused",
    "buffers_created",
    "buffers_reused",
    "buffers_evicted",
    "in_place",
    "host_round_trips",
    "bytes_live",
    "bytes_pooled",
    "bytes_peak",
    "flushes",
}


def test_counters_begin_at_zero_and_go_back_there() -> None:
    counters = Counters()
    assert not any(value for name, value in counters.as_dict().items() if name != "flushes")
    counters.commands += 3
    counters.flushes["read"] += 1
    counters.reset()
    assert counters.as_dict() == Counters().as_dict()
    assert counters.flushes == dict.fromkeys(FLUSH_CAUSES, 0)


def test_a_reading_does_not_change_later() -> None:
    counters = Counters()
    reading = counters.as_dict()
    counters.commands += 1
    counters.flushes["read"] += 1
    assert reading["commands"] == 0
    assert reading["flushes"]["read"] == 0


def test_stats_are_a_mapping_that_prints_as_a_table() -> None:
    stats = Stats({"commands": 12_345, "bytes_live": 3 << 20, "flushes": {"read": 2, "eval": 0}})
    assert dict(stats) == {"commands": 12_345, "bytes_live": 3 << 20, "flushes": {"read": 2, "eval": 0}}
    assert len(stats) == 3
    assert str(stats).splitlines() == [
        "commands       12,345",
        "bytes_live    3.0 MiB",
        "flushes.read        2",
    ]
    assert repr(stats) == str(stats)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5120.0 GiB")],
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert readable_bytes(count) == text


@pytest.mark.gpu
def test_a_device_counts_all_there_is_to_count(alone: Bench) -> None:
    assert set(alone.stats) >= NAMES
    x = alone.upload(floats(1, 2, 3))
    for _ in range(3):
        alone.numbers(alone.add(alone.scale(x, 2), x))
    stats = alone.stats
    assert stats["commands"] == stats["dispatches"] == 6
    assert stats["submissions"] == stats["host_round_trips"] == stats["flushes"]["read"] == 3
    assert stats["pipelines_compiled"] == 2  # scale, and add over its first input
    assert stats["buffers_created"] == 2
    assert stats["bytes_uploaded"] == 12
    assert stats["bytes_downloaded"] == 36
    assert stats["in_place"] == 3
    assert stats["bind_groups_created"] + stats["bind_groups_reused"] == 6
    assert stats["queues_resolved"] + stats["queues_replayed"] == 3


@pytest.mark.gpu
def test_bytes_are_live_or_pooled(alone: Bench) -> None:
    x = alone.upload(floats(1))
    y = alone.upload([0.0] * 1000)
    assert (alone.stats["bytes_live"], alone.stats["bytes_pooled"]) == (256 + 4096, 0)
    del y
    alone.device.flush()
    stats = alone.stats
    assert (stats["bytes_live"], stats["bytes_pooled"], stats["bytes_peak"]) == (256, 4096, 4352)
    del x
    alone.device.flush()
    assert alone.stats["bytes_live"] == 0


@pytest.mark.gpu
def test_reset(alone: Bench) -> None:
    x = alone.upload(floats(1))
    alone.numbers(alone.scale(x, 2))
    alone.device.flush()
    alone.device.reset_stats()
    stats = alone.stats
    assert stats["commands"] == stats["submissions"] == stats["flushes"]["read"] == 0
    assert stats["bytes_live"] == stats["bytes_peak"] == 256
    assert "commands" in str(alone.device.stats())
