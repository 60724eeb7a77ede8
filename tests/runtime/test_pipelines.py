"""Pipelines: compiled once, checked or trusted, and errors that show the user's own line."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.runtime.helpers import SCALE, SCALE_IN_PLACE, Bench, bench, floats
from webgrad.errors import CompileError, DeviceLostError, DTypeError, LaunchError
from webgrad.runtime.pipelines import Pipeline, explain
from webgrad.wgsl import Program, program_from_source

# A kernel that reads far outside its input.
OUTSIDE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
struct Params { index: u32 }
var<uniform> p: Params;
@compute @workgroup_size(1) fn outside() { y[0] = x[p.index]; }
"""
BROKEN = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(1)
fn broken() {
    let half: f32 = 0.5;
    y[0] = half + 1u;
}
"""


def variant(number: int) -> Program:
    """One of many kernels that differ in a constant."""
    return program_from_source(
        SCALE.replace("* p.factor", f"* p.factor + {number}.0"), label=f"scale + {number}"
    )


@pytest.mark.gpu
def test_a_pipeline_is_compiled_once(alone: Bench) -> None:
    x = alone.upload(floats(1))
    for _ in range(5):
        pipeline = alone.pipeline(SCALE, "again")
        y = alone.device.allocate(4)
        alone.device.dispatch(pipeline, [x, y], b"\1\0\0\0\0\0\x80\x3f", (1, 1, 1))
        assert alone.numbers(y).tolist() == [1]
    assert alone.stats["pipelines_compiled"] == 1


@pytest.mark.gpu
def test_one_program_is_one_pipeline_for_each_way_to_compile_it(alone: Bench) -> None:
    program = program_from_source(SCALE, label="scale")
    in_place = [(((0, 1),), program_from_source(SCALE_IN_PLACE, label="scale over 0"))]
    device = alone.device
    assert device.pipeline(program) is device.pipeline(program)
    assert device.pipeline(program) is device.pipeline(program, checked=False)
    assert device.pipeline(program, checked=True) is not device.pipeline(program)
    assert device.pipeline(program, in_place=in_place) is device.pipeline(program, in_place=tuple(in_place))
    assert device.pipeline(program).in_place == ()
    assert [pairs for pairs, _ in device.pipeline(program, in_place=in_place).in_place] == [((0, 1),)]


@pytest.mark.gpu
@pytest.mark.parametrize("pairs", [((9, 1),), ((1, 0),), ((-1, 1),), ((0, 1), (0, 1))])
def test_a_variant_for_other_bindings_is_refused(alone: Bench, pairs: tuple[tuple[int, int], ...]) -> None:
    program, variant = (program_from_source(each, label="scale") for each in (SCALE, SCALE_IN_PLACE))
    with pytest.raises(LaunchError, match=r"scale in place of .* \(input, output\) by binding"):
        alone.device.pipeline(program, in_place=[(pairs, variant)])


@pytest.mark.gpu
def test_only_the_variant_that_is_used_is_compiled(alone: Bench) -> None:
    x = alone.upload(floats(1))
    y = alone.scale(x, 2)
    del x
    assert alone.numbers(y).tolist() == [2]
    assert alone.stats["in_place"] == 1
    assert alone.stats["pipelines_compiled"] == 1


@pytest.mark.gpu
def test_devices_leave_no_pool_of_threads_to_be_collected() -> None:
    """A signal that comes while Python collects one would be lost with the callback that it comes in."""
    bench()
    gc.collect()
    before = sum(isinstance(each, ThreadPoolExecutor) for each in gc.get_objects())
    benches = [bench() for _ in range(3)]
    for each in benches:
        each.device.synchronize()
    assert sum(isinstance(each, ThreadPoolExecutor) for each in gc.get_objects()) == before


def test_threads_that_ask_together_compile_once(alone: Bench) -> None:
    programs = [variant(number) for number in range(4)]
    barrier = threading.Barrier(8)

    def work(number: int) -> list[list[float]]:
        barrier.wait()
        results = []
        for step in range(4):
            pipeline = alone.device.pipeline(programs[(number + step) % 4])
            x, y = alone.upload(floats(number)), alone.device.allocate(4)
            alone.device.dispatch(pipeline, [x, y], b"\1\0\0\0\0\0\0\x40")
            results.append(alone.numbers(y).tolist())
        return results

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(8)))
    assert found == [[[2.0 * number + (number + step) % 4] for step in range(4)] for number in range(8)]
    assert alone.stats["pipelines_compiled"] == 4


# Errors


@pytest.mark.gpu
@pytest.mark.parametrize("checked", [False, True], ids=["trusted", "checked"])
def test_a_compile_error_shows_where_and_what(alone: Bench, checked: bool) -> None:
    program = program_from_source(
        BROKEN.replace("0.5", "f32(WIDTH)"), label="my kernel", defines={"WIDTH": 4}
    )
    y = alone.device.allocate(4)
    alone.device.dispatch(alone.device.pipeline(program, checked=checked), [y])
    with pytest.raises(CompileError) as caught:
        alone.device.flush()
    message = str(caught.value)
    assert "my kernel" in message
    assert "entry point: broken" in message
    assert "WIDTH=4" in message
    assert "    y[0] = half + 1u;" in message
    marked = next(line for line in message.splitlines() if line.lstrip().startswith(">"))
    assert marked.split("|")[0].split() == [">", "7"]
    assert "half + 1u" in marked


@pytest.mark.gpu
def test_places_are_found_in_tints_words_too() -> None:
    text = "@compute @workgroup_size(1)\nfn main() {\n    let x = nothing(1.0);\n    let y = none;\n}\n"
    program = program_from_source(text, label="wrong")
    words = (
        "The kernel was refused: Error while parsing WGSL: :3:13 error: unresolved call target 'nothing'\n"
        "    let x = nothing(1.0);\n            ^^^^^^^\n\n:4:13 error: unresolved value 'none'\n"
    )
    told = explain(program, program.text, words)
    assert "> " + "    3 |     let x = nothing(1.0);" in told
    assert "> " + "    4 |     let y = none;" in told


def test_a_compile_error_does_not_stop_the_device(alone: Bench) -> None:
    x = alone.upload(floats(2))
    pipeline = alone.pipeline(BROKEN, "broken")
    for _ in range(2):
        y = alone.device.allocate(4, "result")
        alone.device.dispatch(pipeline, [y])
        with pytest.raises(CompileError):
            alone.device.flush()
    with pytest.raises(DeviceLostError, match=r"'result' .* was to be computed by commands that"):
        alone.device.read(y)
    assert alone.numbers(alone.scale(x, 3)).tolist() == [6]


def test_too_many_parameters() -> None:
    members = ", ".join(f"m{number}: vec4<f32>" for number in range(9))
    source = f"""
    struct Params {{ {members} }}
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    var<uniform> p: Params;
    @compute @workgroup_size(1) fn f() {{ y[0] = p.m8.x; }}
    """
    program = program_from_source(source, label="wide")
    with pytest.raises(
        LaunchError, match=r"wide takes 144 bytes of parameters; at most 128 .*storage buffer"
    ):
        Pipeline(program, checked=False)


@pytest.mark.gpu
def test_the_most_parameters(encoded: Bench) -> None:
    members = ", ".join(f"m{number}: vec4<f32>" for number in range(8))
    source = f"""
    struct Params {{ {members} }}
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    var<uniform> p: Params;
    @compute @workgroup_size(1) fn f() {{ y[0] = p.m0.x; y[1] = p.m7.w; }}
    """
    y = encoded.device.allocate(8)
    params = np.arange(32, dtype=np.float32).tobytes()
    encoded.device.dispatch(encoded.pipeline(source, "wide"), [y], params)
    assert encoded.numbers(y).tolist() == [0, 31]


@pytest.mark.gpu
def test_a_missing_feature_is_an_error_that_names_it() -> None:
    without = bench(disable_features=frozenset({"f16", "subgroups"}))
    source = """
    enable f16;
    @group(0) @binding(0) var<storage, read_write> y: array<f16>;
    @compute @workgroup_size(1) fn f() { y[0] = 1.0h; }
    """
    program = program_from_source(source, label="halves")
    with pytest.raises(DTypeError, match=r"halves needs f16, which webgpu:\d+ \(.*\) lacks"):
        without.device.pipeline(program)
    with pytest.raises(DTypeError, match=r"halves needs f16, which this device lacks"):
        without.queue.context.compiler.request(Pipeline(program, checked=False))


@pytest.mark.gpu
def test_a_feature_that_is_there_works(shared: Bench) -> None:
    if "f16" not in shared.device.features:
        pytest.skip("this adapter has no f16")
    source = """
    @group(0) @binding(0) var<storage, read_write> y: array<f16>;
    @compute @workgroup_size(1) fn f() { y[0] = 1.5h; y[1] = 2.0h; }
    """
    y = shared.device.allocate(4)
    shared.device.dispatch(shared.pipeline(source, "halves"), [y])
    assert shared.device.read(y).view(np.float16).tolist() == [1.5, 2]


# Bounds checks


def read_outside(bench: Bench, checked: bool | None) -> float:
    """What a kernel finds a gigabyte behind the end of an input that is all 7."""
    x, y = bench.upload(np.full(64, 7)), bench.device.allocate(4)
    bench.device.dispatch(bench.pipeline(OUTSIDE, "outside", checked=checked), [x, y], b"\0\0\0\x10")
    return float(bench.numbers(y)[0])


@pytest.mark.gpu
def test_a_checked_kernel_reads_nothing_outside_its_buffers(alone: Bench) -> None:
    assert read_outside(alone, True) in (0, 7)  # clamped to the buffer, or nothing


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("checks", "checked", "careful"),
    [
        (False, None, False),
        (False, False, False),
        (False, True, True),
        (True, None, True),
        (True, False, True),
        (True, True, True),
    ],
)
def test_checks_are_for_all_kernels(checks: bool, checked: bool | None, careful: bool) -> None:
    assert bench(checks=checks).pipeline(SCALE, "scale", checked=checked).checked is careful


@pytest.mark.gpu
def test_all_kernels_work_with_checks() -> None:
    checking = bench(checks=True)
    assert read_outside(checking, None) in (0, 7)
    x = checking.upload(floats(1, 2))
    assert checking.numbers(checking.add(checking.scale(x, 2), x)).tolist() == [3, 6]
