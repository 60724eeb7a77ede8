"""Users' kernels on the cpu: the same texts as on a GPU's adapter give the same results; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import webgrad as wg
from webgrad.native.user_kernels import kernel as user_kernel
from webgrad.native.user_kernels.kernel import written
from webgrad.native.user_kernels.launch import launch
from webgrad.wgsl import program_from_source
from webgrad.wgsl.packing import packer

Array = npt.NDArray[Any]
generator = np.random.default_rng(7)
FLOATS = generator.standard_normal(512).astype(np.float32)
WORDS = generator.integers(0, 1 << 32, 512, np.uint32)


class Case(NamedTuple):
    """A kernel, its buffers in order, its grid and parameters."""

    source: str
    buffers: Callable[[], list[Array]]
    grid: tuple[int, int, int] = (1, 1, 1)
    params: Mapping[str, Any] = MappingProxyType({})
    tolerance: float = 0.0


def buffers_of(reads: int, kinds: str) -> str:
    """Declarations: `kinds` are the element types of buffers, the first `reads` of which are read."""
    accesses = ["read" if at < reads else "read_write" for at in range(len(kinds.split()))]
    return "\n".join(
        f"@group(0) @binding({at}) var<storage, {access}> b{at}: array<{kind}>;"
        for at, (access, kind) in enumerate(zip(accesses, kinds.split(), strict=True))
    )


ID = "@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32"
CASES = {
    "axpy": Case(
        f"""{buffers_of(1, "f32 f32")}
        struct Params {{ factor: f32, shift: vec3<i32>, n: u32 }}
        var<immediate> p: Params;
        @compute @workgroup_size(64) fn main({ID}) {{
            if (id.x >= p.n) {{ return; }}
            b1[id.x] += p.factor * b0[id.x] + f32(p.shift.z - p.shift[0]);
        }}""",
        lambda: [FLOATS[:200], FLOATS[200:400].copy()],
        (4, 1, 1),
        {"factor": 0.5, "shift": (1, 2, -3), "n": 150},
    ),
    "reduction by a tree": Case(
        f"""{buffers_of(1, "f32 f32")}
        var<workgroup> tile: array<f32, 64>;
        @compute @workgroup_size(64) fn main({ID}, @builtin(workgroup_id) group: vec3<u32>) {{
            let mine = b0[id.x];
            tile[local] = mine * mine;
            workgroupBarrier();
            for (var step = 32u; step > 0u; step >>= 1u) {{
                if (local < step) {{ tile[local] += tile[local + step]; }}
                workgroupBarrier();
            }}
            if (local == 0u) {{ b1[group.x] = tile[0] + mine; }}
        }}""",
        lambda: [FLOATS, np.zeros(8, np.float32)],
        (8, 1, 1),
    ),
    "a product by tiles": Case(
        f"""{buffers_of(2, "f32 f32 f32")}
        const SIDE = 8u;
        const N = 2u * SIDE + 8;
        var<workgroup> left: array<array<f32, SIDE>, SIDE>;
        var<workgroup> right: array<array<f32, 8>, 8>;
        @compute @workgroup_size(SIDE, SIDE)
        fn main(@builtin(local_invocation_id) at: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {{
            let row = group.y * SIDE + at.y;
            let column = group.x * SIDE + at.x;
            var total = array<f32, 2>();
            for (var tile = 0u; tile < N / SIDE; tile++) {{
                left[at.y][at.x] = b0[row * N + tile * SIDE + at.x];
                right[at.y][at.x] = b1[(tile * SIDE + at.y) * N + column];
                workgroupBarrier();
                for (var k = 0u; k < SIDE; k++) {{ total[k & 1u] += left[at.y][k] * right[k][at.x]; }}
                workgroupBarrier();
            }}
            b2[row * N + column] = total[0] + total[1];
        }}""",
        lambda: [np.resize(FLOATS, 576), np.resize(FLOATS[::-1], 576), np.zeros(576, np.float32)],
        (3, 3, 1),
        tolerance=1e-5,
    ),
    "structs": Case(
        """struct Inner { a: vec3<f32>, b: f32, c: vec2<u32>, @align(16) d: i32 }
        struct Outer { first: Inner, rows: array<Inner, 2>, m: mat3x3<f32>, tail: array<vec2<f32>> }
        @group(0) @binding(0) var<storage, read_write> o: Outer;
        @group(0) @binding(1) var<storage, read_write> out: array<f32>;
        alias Numbers = array<f32, 4>;
        @compute @workgroup_size(1) fn main() {
            var copy = o.rows[1];
            copy.a.y = 7.0;
            copy.c = copy.c.yx + vec2(1u, 2u);
            o.first = copy;
            o.rows[0] = Inner(vec3f(1, 2, 3), 4.0, vec2u(5), -6);
            o.m = transpose(o.m) * 2.0;
            let v = o.m * vec3<f32>(1.0, -1.0, 0.5);
            o.m[1] = v;
            o.m[2][0] = dot(v, v);
            let n = arrayLength(&o.tail);
            for (var i = 0u; i < n; i++) { o.tail[i] = o.tail[n - 1u - i].yx * f32(i); }
            var numbers: Numbers;
            numbers[2] = 3.0;
            let all = array(numbers, Numbers(1, 2, 3, 4));
            for (var i = 0; i < 8; i++) { out[i] = all[i / 4][i % 4]; }
        }""",
        lambda: [np.resize(FLOATS, 72), np.zeros(8, np.float32)],
        tolerance=1e-6,
    ),
    "control flow": Case(
        f"""{buffers_of(1, "u32 u32")}
        fn first_multiple(by: u32, above: u32) -> u32 {{
            var at = above;
            loop {{
                if (at % by == 0u) {{ return at; }}
                if (at > above + 100u) {{ break; }}
                continuing {{ at++; break if at > 5000u; }}
            }}
            return 0u;
        }}
        fn kind(x: u32) -> i32 {{
            switch (x % 7u) {{
                case 0u, 1u: {{ return -1; }}
                case 2u: {{ if (x > 100u) {{ break; }} return 2; }}
                case 3, default {{ let y = i32(x % 5u); return y * 10; }}
                case 5u {{ return 50; }}
            }}
            return 99;
        }}
        @compute @workgroup_size(32) fn main({ID}) {{
            let x = b0[id.x] % 1000u;
            var sum = 0u;
            for (var i = 0u; i < x; i += 1u) {{
                if (i % 3u == 1u) {{ continue; }}
                var j = i;
                while (j > 0u) {{
                    j /= 2u;
                    if ((j ^ i) == 9u) {{ break; }}
                    sum += j & 1u;
                }}
                if (sum > 400u && first_multiple(3u, sum) > 402u) {{ break; }}
            }}
            let odd = (x & 1u) == 1u || kind(x) > 20;
            b1[id.x] = sum + first_multiple(x % 11u + 1u, x) * 1000u;
            b1[id.x] += u32(kind(x)) + select(0u, 1u << 20u, odd);
        }}""",
        lambda: [WORDS[:128], np.zeros(128, np.uint32)],
        (4, 1, 1),
    ),
    "atomics": Case(
        f"""{buffers_of(1, "u32")}
        @group(0) @binding(1) var<storage, read_write> histogram: array<atomic<u32>, 16>;
        struct Ends {{ low: atomic<i32>, high: atomic<i32>, mask: atomic<u32>, swaps: atomic<u32> }}
        @group(0) @binding(2) var<storage, read_write> ends: Ends;
        var<workgroup> counts: array<atomic<u32>, 16>;
        @compute @workgroup_size(64) fn main({ID}) {{
            let x = b0[id.x];
            if (local < 16u) {{ atomicStore(&counts[local], 0u); }} // drivers do not always
            workgroupBarrier();
            atomicAdd(&counts[x % 16u], 1u);
            atomicMin(&ends.low, bitcast<i32>(x));
            atomicMax(&ends.high, bitcast<i32>(x));
            atomicOr(&ends.mask, x & 0xff0u);
            loop {{
                let old = atomicLoad(&ends.swaps);
                let made = atomicCompareExchangeWeak(&ends.swaps, old, old + (x & 3u));
                if (made.exchanged) {{ break; }}
            }}
            workgroupBarrier();
            if (local < 16u) {{ atomicAdd(&histogram[local], atomicLoad(&counts[local])); }}
        }}""",
        lambda: [WORDS, np.zeros(16, np.uint32), np.zeros(4, np.uint32)],
        (8, 1, 1),
    ),
    "functions of floats": Case(
        f"""{buffers_of(1, "vec4<f32> vec4<f32>")}
        @compute @workgroup_size(16) fn main({ID}) {{
            let x = b0[id.x];
            let y = abs(x) + 0.5;
            var sum = sin(x) + cos(x * 2) + tan(x * 0.3) + exp(x) + log2(y) + sqrt(y) + inverseSqrt(y);
            sum += pow(y, x) + atan2(x, y) + tanh(x) + asinh(x) + exp2(x) + log(y) + cosh(x * 0.5);
            sum += fract(x) + floor(x) + ceil(x.wzyx) + round(x * 3.3) + trunc(x * 5) + sign(x);
            sum += mix(x, y, vec4f(0.25)) + mix(x, y, 0.75) + step(x, y) + smoothstep(vec4f(-1), vec4f(2), x);
            sum += clamp(x, vec4f(-0.5), vec4f(0.5)) + saturate(x) + fma(x, y, x) + radians(x) + degrees(x);
            sum += vec4(normalize(x.xyz), length(x.yz)) + vec4(cross(x.xyz, y.wzx), distance(x, y));
            sum += vec4(reflect(x.xy, vec2(0.6, 0.8)), dot(x.xyz, y.xyz), min(x.x, 0.25));
            b1[id.x] = select(sum, max(sum, x), x < vec4f(0)) + f32(any(x > y)) - f32(all(x < y));
        }}""",
        lambda: [FLOATS, np.zeros(512, np.float32)],
        (8, 1, 1),
        tolerance=2e-4,
    ),
    "functions of integers": Case(
        f"""{buffers_of(1, "u32 i32")}
        fn mixed(h: i32, x: i32) -> i32 {{ return (h << 5u) ^ (h >> 27u) ^ x; }}
        @compute @workgroup_size(64) fn main({ID}) {{
            let x = b0[id.x];
            let s = bitcast<i32>(x);
            var h = 0;
            h = mixed(h, i32(countOneBits(x) + countLeadingZeros(x | 1u) + countTrailingZeros(x)));
            h = mixed(h, bitcast<i32>(firstLeadingBit(x)) + firstLeadingBit(s) + i32(firstTrailingBit(x)));
            h = mixed(h, bitcast<i32>(reverseBits(x)));
            h = mixed(h, extractBits(s, x % 35u, 7u) + i32(extractBits(x, 30u, x % 9u)));
            h = mixed(h, bitcast<i32>(insertBits(x, 0x5au, x % 33u, 5u)));
            h = mixed(h, s / (s % 3) + s % (s & 3) + s % -7 + s / 2147483647);
            h = mixed(h, (-2147483647 - 1) / ((s & 1) - 1) + (-2147483647 - 1) % -1);
            h = mixed(h, abs(s) + sign(s) + min(s, 5) + clamp(s, -100, 100));
            h = mixed(h, i32(f32(s)) + i32(f32(x) * 0.37));
            h = mixed(h, i32(u32(f32(x) * 0.9)) + i32(vec2<u32>(x, 1u).x >> (x & 31u)));
            h = mixed(h, dot(vec3(s, 2, 3), vec3(1, s, -1)));
            h = mixed(h, i32(pack4xU8(unpack4xU8(x).wzyx)) + i32(dot4U8Packed(x, 0x01020304u)));
            h = mixed(h, dot4I8Packed(x, x) + i32(pack4xI8(unpack4xI8(x).yxwz)));
            b1[id.x] = h;
        }}""",
        lambda: [
            np.concatenate([WORDS[:500], [0, 1, 2, 3, 1 << 31, (1 << 32) - 1, 7, 8, 9, 10, 11, 12]]).astype(
                np.uint32
            ),
            np.zeros(512, np.int32),
        ],
        (8, 1, 1),
    ),
    "packed words": Case(
        f"""{buffers_of(1, "vec4<f32> u32 f32")}
        @compute @workgroup_size(16) fn main({ID}) {{
            let x = b0[id.x];
            let halves = pack2x16float(round(x.xy * 64) / 64);
            let words = array(pack4x8unorm(x), pack4x8snorm(x), halves, pack4xI8Clamp(vec4i(x * 100)));
            for (var i = 0u; i < 4u; i++) {{ b1[id.x * 4u + i] = words[i]; }}
            b2[id.x] = dot(unpack4x8unorm(words[0]), unpack4x8snorm(words[1])) + unpack2x16float(words[2]).y;
        }}""",
        lambda: [FLOATS, np.zeros(512, np.uint32), np.zeros(128, np.float32)],
        (8, 1, 1),
        tolerance=1e-6,
    ),
    "pointers and private variables": Case(
        f"""{buffers_of(1, "f32 f32")}
        var<private> calls: u32 = 3u;
        var<private> seen: array<f32, 4>;
        override SCALE: f32 = 2.5;
        const WEIGHTS = array<f32, 3>(0.5, SCALED, 2.0);
        const SCALED = 0.25 * 4 + 1;
        fn swap(a: ptr<function, f32>, b: ptr<function, f32>) {{ let t = *a; *a = *b; *b = t; calls++; }}
        fn note(x: f32) {{ seen[calls % 4u] = x; calls += 1u; }}
        @compute @workgroup_size(8) fn main({ID}) {{
            var low = b0[id.x];
            var high = b0[id.x + 1u];
            if (low > high) {{ swap(&low, &high); }}
            note(low); note(high);
            let p = &seen;
            var v = vec3<f32>(low, high, 1.0);
            v[calls % 3u] *= WEIGHTS[calls % 3u];
            b1[id.x] = (*p)[0] + v.x * SCALE + v.y - p[3] + f32(calls);
        }}""",
        lambda: [FLOATS[:100], np.zeros(64, np.float32)],
        (8, 1, 1),
        tolerance=1e-6,
    ),
    "functions that wait": Case(
        f"""{buffers_of(1, "u32 u32")}
        var<workgroup> shared_values: array<u32, 32>;
        var<workgroup> limit: u32;
        fn scanned(x: u32, at: u32) -> u32 {{
            shared_values[at] = x;
            workgroupBarrier();
            var step = 1u;
            loop {{
                if (step >= 32u) {{ break; }}
                var sum = shared_values[at];
                if (at >= step) {{ sum += shared_values[at - step]; }}
                workgroupBarrier();
                shared_values[at] = sum;
                workgroupBarrier();
                continuing {{ step *= 2u; }}
            }}
            let result = shared_values[at];
            workgroupBarrier();
            return result;
        }}
        @compute @workgroup_size(32) fn main({ID}) {{
            let x = b0[id.x] % 100u;
            let sum = scanned(x, local);
            if (local == 31u) {{ limit = sum / 2u; }}
            let half = workgroupUniformLoad(&limit);
            var places = 0u;
            if (half > 700u) {{
                let again = scanned(select(0u, 1u, sum > half), local);
                places = again;
            }}
            storageBarrier();
            b1[id.x] = sum * 1000u + half + places;
        }}""",
        lambda: [WORDS[:256], np.zeros(256, np.uint32)],
        (8, 1, 1),
    ),
    "three dimensions": Case(
        f"""{buffers_of(0, "u32")}
        struct In {{
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_id) local: vec3<u32>,
        }}
        @compute @workgroup_size(2, 3, 2) fn main(in: In, @builtin(workgroup_id) group: vec3u) {{
            let size = in.groups * vec3(2, 3, 2);
            let at = in.id.x + size.x * (in.id.y + size.y * in.id.z);
            b0[at] = in.local.x + 10u * in.local.y + 100u * in.local.z + 1000u * group.x + 10000u * group.y
                + 100000u * group.z;
        }}""",
        lambda: [np.zeros(2 * 3 * 2 * 3 * 2 * 4, np.uint32)],
        (3, 2, 4),
    ),
}


def on_cpu(case: Case) -> list[Array]:
    program = program_from_source(case.source)
    arrays = [each.copy() for each in case.buffers()]
    params = packer(program).pack(*[case.params[each.name] for each in program.params])
    launch(program, case.grid, arrays, params)
    return arrays


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_cpu_agrees_with_an_adapter(name: str) -> None:
    case = CASES[name]
    device = wg.open_device("webgpu")
    assert isinstance(device, wg.Device)
    kernel = wg.kernel(case.source, device=device)
    buffers = [device.upload(each) for each in case.buffers()]
    kernel(*buffers, grid=case.grid, **case.params)
    for found, buffer in zip(on_cpu(case), buffers, strict=True):
        expected = np.frombuffer(device.read(buffer), found.dtype)
        if case.tolerance:
            np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)
        else:
            np.testing.assert_array_equal(found, expected)


# What must not happen


def run(source: str, *arrays: Array, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
    launch(program_from_source(source, label="mine"), grid, arrays, b"")


def test_nothing_outside_of_a_buffer_is_touched() -> None:
    source = f"""{buffers_of(1, "i32 f32")}
    struct Pair {{ a: f32, rest: array<vec2<f32>, 2> }}
    @group(0) @binding(2) var<storage, read_write> pairs: array<Pair>;
    @compute @workgroup_size(1) fn main({ID}) {{
        let at = b0[id.x];
        b1[at] = 1.0;
        b1[u32(at) * 4u] = 2.0;
        pairs[at].rest[at][at] = b1[at + 5] + b1[arrayLength(&b1)];
        var few = array<f32, 3>(1, 2, 3);
        few[at] = 4.0;
        pairs[0].a = few[at - 1] + vec4f(1)[at];
    }}"""
    places = np.array([-1, 5, 1 << 30, -(1 << 31), (1 << 31) - 1, 3], np.int32)
    around = [np.full(256, 7.0, np.float32) for _ in range(2)]
    run(source, places, around[0][100:104], around[1][100:112], grid=(6, 1, 1))
    for each, size in zip(around, (4, 12), strict=True):
        assert (np.delete(each, range(100, 100 + size)) == 7).all()
        assert not (each[100 : 100 + size] == 7).all()


def test_a_loop_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_kernel, "MAX_TURNS", 100_000)
    for loop in (
        "loop { b0[0] += 1.0; }",
        "while (b0[0] < 2.0) { }",
        "for (;;) { workgroupBarrier(); b0[1] = 1.0; }",
    ):
        source = f"{buffers_of(0, 'f32')}\n@compute @workgroup_size(4) fn main() {{ {loop} }}"
        with pytest.raises(wg.LaunchError, match="mine: the loops of one workgroup"):
            run(source, np.zeros(2, np.float32), grid=(100, 1, 1))


def test_invocations_that_miss_a_barrier_are_found() -> None:
    head = f"{buffers_of(0, 'u32')}\n@compute @workgroup_size(4) fn main({ID}) {{ let n = b0[local];"
    for body in (
        "if (n > 2u) { workgroupBarrier(); }",
        "for (var i = 0u; i < n; i++) { workgroupBarrier(); }",
        "loop { workgroupBarrier(); if (n > 2u) { break; } }",
    ):
        with pytest.raises(wg.LaunchError, match="different ways around a barrier"):
            run(f"{head} {body} }}", np.arange(4, dtype=np.uint32))
    total = np.arange(4, dtype=np.uint32)
    run(f"{head} if (n == 1u) {{ return; }} workgroupBarrier(); b0[local] += 10u; }}", total)
    assert total.tolist() == [10, 1, 12, 13]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("let x = dpdx(1.0);", "`dpdx` is not translated"),
        ("let x = subgroupAdd(1u);", "`subgroupAdd` is not translated"),
        ("\n let x = frexp(1.0);", "mine:4: the function `frexp`"),
        ("b0[0] = 1u;", "f32 is expected, not u32"),
        ("let x = 1u + b0[0];", r"u32 \+ f32: convert"),
        ("if (b0[0]) { }", "a condition is a bool"),
        ("let x = y;", "`y` is not known"),
        ("again();", "`again` calls itself"),
        ("switch 1u { default { workgroupBarrier(); } }", "a barrier in a switch"),
        ("let p = &b0[0]; workgroupBarrier(); *p = 1.0;", "`p` is kept across a barrier"),
        ("var big: array<f32, 100000>; workgroupBarrier(); big[0] = 1.0;", "bytes, which the cpu"),
        ("let x = vec3f(1) + vec2f(1);", "vectors of different lengths"),
        ("let x = vec3f(1).w;", "no member w"),
        ("break;", "outside of a loop"),
        ("let x = b0[0] & 1.0;", "`&` of f32"),
        ("let x = -1u;", "`-` of u32"),
        ("let x = min(1);", "is not WGSL, or is not translated"),
        (f"let x = {'(' * 400}1.0{')' * 400};", "nested too deep"),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    source = f"""{buffers_of(0, "f32")}
    fn again() {{ again(); }}
    @compute @workgroup_size(8) fn main() {{ {body} }}"""
    with pytest.raises(wg.CompileError, match=message):
        written(program_from_source(source, label="mine"))


def test_a_long_sum() -> None:
    total, terms = np.ones(1, np.float32), " + ".join(["x"] * 900)
    run(
        f"{buffers_of(0, 'f32')}\n"
        f"@compute @workgroup_size(1) fn main() {{ let x = b0[0]; b0[0] = {terms}; }}",
        total,
    )
    assert total[0] == 900


def test_half_floats_and_64_bits() -> None:
    source = f"""enable f16;
    {buffers_of(1, "f16 f16 u64 f64")}
    @compute @workgroup_size(1) fn main({ID}) {{
        let x = b0[id.x];
        b1[id.x] = x * 3.0h + exp(x) + f16(id.x);
        b2[id.x] = u64(id.x) << 40u | u64(u32(f32(x) * 10.0));
        b3[id.x] = f64(f32(x)) / 3.0lf + sqrt(2.0lf);
    }}"""
    x = np.linspace(0, 2, 16).astype(np.float16)
    half, word, wide = np.zeros(16, np.float16), np.zeros(16, np.uint64), np.zeros(16, np.float64)
    run(source, x, half, word, wide, grid=(16, 1, 1))
    places = np.arange(16)
    np.testing.assert_allclose(half.astype(np.float32), x * 3.0 + np.exp(x) + places, rtol=2e-3)
    assert word.tolist() == [(at << 40) + int(np.float32(each) * np.float32(10)) for at, each in enumerate(x)]
    np.testing.assert_allclose(wide, x.astype(np.float64) / 3 + np.sqrt(2), rtol=1e-15)
