"""Encoding: parameters of any number and size reach their commands, in every way there is to pass them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.runtime.helpers import Bench, floats

pytestmark = pytest.mark.gpu

WIDE = """
struct Params { index: u32, a: u32, v: vec4<f32>, w: vec4<f32> }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(1) fn wide() { y[p.index] = p.v.x + p.w.w; }
"""
BARE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn bare() { y[0] = y[0] + 1.0; }
"""


@pytest.mark.parametrize("count", [1, 255, 256, 257, 2500])
def test_every_command_gets_its_own_parameters(encoded: Bench, count: int) -> None:
    pipeline = encoded.pipeline(WIDE, "wide")
    y = encoded.upload(np.zeros(count))
    for turn in range(2):
        with encoded.queue.hold():
            for index in range(count):
                params = struct.pack("<II8x4f4f", index, 0, index, 0, 0, 0, 0, 0, 0, turn)
                encoded.device.dispatch(pipeline, [y], params)
        assert encoded.numbers(y).tolist() == [index + turn for index in range(count)]


def test_a_replay_after_the_parameter_block_has_grown(encoded: Bench) -> None:
    x = encoded.upload(floats(1))
    found = []
    for length in (3, 3, 3000, 3, 6000, 3, 3):
        y = x
        with encoded.queue.hold():
            for _ in range(length - 1):
                y = encoded.scale(y, 1)
            y = encoded.scale(y, length)
        found.append(encoded.numbers(y).tolist())
    assert found == [[3], [3], [3000], [3], [6000], [3], [3]]


def test_commands_with_and_without_parameters_take_turns(encoded: Bench) -> None:
    bare = encoded.pipeline(BARE, "bare")
    y, z = encoded.upload(floats(1)), encoded.upload(floats(0))
    for factor in (2, 3):
        encoded.device.dispatch(bare, [y])
        encoded.scale_into(y, z, factor)
        encoded.device.dispatch(bare, [z])
        encoded.scale_into(z, y, factor)
    assert encoded.numbers(y).tolist() == [((((1 + 1) * 2 + 1) * 2 + 1) * 3 + 1) * 3]


def test_grids_in_all_dimensions(encoded: Bench) -> None:
    source = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(1) fn mark(@builtin(workgroup_id) id: vec3<u32>) {
        y[id.x + 3u * id.y + 6u * id.z] = 1u + id.x + 10u * id.y + 100u * id.z;
    }
    """
    y = encoded.device.upload(np.zeros(12, np.uint32))
    encoded.device.dispatch(encoded.pipeline(source, "mark"), [y], b"", (3, 2, 2))
    expected = [1 + x + 10 * row + 100 * layer for layer in range(2) for row in range(2) for x in range(3)]
    assert encoded.device.read(y).view(np.uint32).tolist() == expected


def test_a_kernel_without_buffers_runs(encoded: Bench) -> None:
    nothing = encoded.pipeline("@compute @workgroup_size(1) fn nothing() {}", "nothing")
    encoded.device.dispatch(nothing, [])
    y = encoded.scale(encoded.upload(floats(2)), 2)
    assert encoded.numbers(y).tolist() == [4]


def test_the_settings_choose_the_encoder(encoded: Bench) -> None:
    settings = encoded.device.settings
    by_immediates = encoded.queue.context.native.parameters == "immediates"
    assert by_immediates is settings.immediates
    assert type(encoded.queue.context.encoder).__name__.lower().strip("_") == settings.encoder
