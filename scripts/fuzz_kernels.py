"""Users' kernels with mistakes in them: texts of WGSL and .pwgsl that were changed at random, compiled.

In: a seed. Out: "compiled", or the name of the error. `wg.kernel` must compile a text or raise an error of
webgrad: a compiler that dies of it takes the process along, and that is what this looks for. What compiles is
launched once, since drivers compile then; a loop that was changed may have no end, which is no failure.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import webgrad as wg
from scripts.fuzzing import ENDLESS, Case

__all__ = ["OWN", "Kernel", "changed", "seeds", "start"]

Kernel = tuple[str, dict[str, str]]  # text, defines
Words = list[str]
BUFFER, LARGEST = 4096, 1 << 20  # bytes of a buffer; kernels that ask for more are not launched
LONGEST = 12_000  # characters of a text to begin with: compilers take seconds for the largest
WORD = re.compile(r"\s+|\w+|<<=|>>=|->|&&|\|\||\+\+|--|[-+*/%&|^=!<>]=|<<|>>|.", re.DOTALL)

OWN = (
    """
struct Params { count: u32, factor: f32, shift: vec2<i32> }
struct Cell { value: f32, marks: array<u32, 4>, place: vec3<f32> }
var<uniform> p: Params;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> cells: array<Cell>;
@group(0) @binding(2) var<storage, read_write> total: atomic<u32>;
var<workgroup> shared_sum: array<f32, 64>;
var<private> state: u32 = 7u;
const TABLE = array<f32, 4>(1.0, 2.0, 0.5, -1.0);
alias Pair = vec2<f32>;
fn turn(v: Pair, by: ptr<function, u32>) -> Pair {
    *by += 1u;
    switch *by % 3u { case 0u, 1u: { return v.yx; } default: { return Pair(v.x, -v.y); } }
}
@compute @workgroup_size(64)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) at: u32) {
    var turns = state;
    var sum = 0.0;
    for (var i = 0u; i < p.count && i < arrayLength(&x); i++) {
        if x[i] != x[i] { continue; }
        sum = fma(x[i], p.factor, sum) + select(0.0, TABLE[i % 4u], (i & 1u) == 0u);
    }
    shared_sum[at] = sum;
    workgroupBarrier();
    var step = 32u;
    loop {
        if step == 0u { break; }
        if at < step { shared_sum[at] += shared_sum[at + step]; }
        workgroupBarrier();
        continuing { step = step >> 1u; }
    }
    let m = mat2x2<f32>(1.0, 2.0, 3.0, 4.0) * turn(vec2(sum, shared_sum[0]), &turns);
    cells[id.x].value = dot(m, vec2<f32>(p.shift)) + bitcast<f32>(turns << 3u) + exp2(-abs(m.x));
    cells[id.x].marks[at & 3u] = countOneBits(turns) + firstLeadingBit(at) + pack2x16float(m);
    cells[id.x].place = normalize(cross(vec3(m, 1.0), vec3<f32>(id)));
    if at == 0u { atomicAdd(&total, u32(clamp(sum, 0.0, 9.0))); atomicMax(&total, 3u); }
}
""",
    """
enable f16;
@group(0) @binding(0) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> y: array<i64>;
fn half(v: vec4<f16>) -> f16 { return v.x * 2.0h + f16(v.y) - min(v.z, v.w); }
@compute @workgroup_size(8, 2, 1)
fn wide(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>) {
    let at = group.x + all.x * group.y;
    var value = i64(half(x[at])) * 3li;
    while value > 100li { value /= 2li; }
    y[at] = value ^ (i64(at) << 5u);
}
""",
)

# Words that compilers have rules of their own for.
INSERTED = (
    *("0u", "-1", "4294967295u", "2147483648", "1e40", "0x1p-200f", "0.0", "1li", "18446744073709551615lu"),
    *(
        "i64",
        "u64",
        "f64",
        "f16",
        "bool",
        "atomic<u32>",
        "array<f32>",
        "array<f32, 1000000000>",
        "array<u32, 0>",
    ),
    *("mat4x4<f32>", "vec3<bool>", "ptr<storage, f32, read_write>", "ptr<function, u32>", "texture_2d<f32>"),
    *("sign", "countTrailingZeros", "reverseBits", "extractBits", "modf", "frexp", "ldexp", "smoothstep"),
    *(
        "subgroupAdd",
        "subgroupBroadcast",
        "dot4U8Packed",
        "unpack4xI8",
        "quantizeToF16",
        "determinant",
        "inverse",
    ),
    *("atomicCompareExchangeWeak", "atomicStore", "workgroupUniformLoad", "storageBarrier", "textureLoad"),
    *("loop { }", "return;", "discard;", "break;", "continue;", "const_assert false;", "override w = 3u;"),
    *(
        "&",
        "*",
        "~",
        "!",
        "-",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ";",
        ",",
        "@",
        ".",
        "_",
        "/*",
        "*/",
        "//",
    ),
    *("@id(0)", "@align(16)", "@size(64)", "@must_use", "@const", "@interpolate(flat)", "@group(7)"),
    *("@workgroup_size(0)", "@workgroup_size(1024, 1024, 64)", "@vertex", "@fragment", "@builtin(position)"),
    *("enable f16;", "enable subgroups;", "requires pointer_composite_access;", "diagnostic(off, x);"),
    *("\n#define A(x) x##x A(A)\n", "\n#if 1\n", "\n#endif\n", "\n#for i in 0..100000\n", "\n#endfor\n"),
    *(
        '\n#include "combine.pwgsl"\n',
        "\n#ifdef T\n",
        "\n#else\n",
        "\n#undef T\n",
        "\n#error no\n",
        "##",
        "\\\n",
    ),
    *("\0", "\ufeff", "\u2028", "é", "𝟘", "\r", "\x1a", '"'),
)
# One word may stand where another of its kind stood: what comes of it is more often read to the end.
KINDS = (
    *(("f32", "u32", "i32", "bool", "f16", "i64", "u64", "f64"), ("vec2", "vec3", "vec4")),
    ("vec2<f32>", "vec4<u32>", "vec3<i32>", "vec2<bool>", "mat2x2<f32>", "mat4x3<f32>", "array<u32, 4>"),
    ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"),
    ("<", ">", "<=", ">=", "==", "!=", "&&", "||"),
    ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "^="),
    ("let", "var", "const", "var<private>", "override"),
    ("read", "read_write", "write"),
    ("storage", "workgroup", "private", "function", "uniform"),
    (
        *(
            "abs",
            "sign",
            "exp2",
            "exp",
            "log",
            "sqrt",
            "inverseSqrt",
            "floor",
            "fract",
            "round",
            "trunc",
            "tanh",
        ),
        *("countOneBits", "countLeadingZeros", "firstLeadingBit", "firstTrailingBit", "reverseBits", "asinh"),
        *(
            "degrees",
            "saturate",
            "quantizeToF16",
            "normalize",
            "length",
            "any",
            "all",
            "transpose",
            "modf",
            "frexp",
        ),
        *(
            "unpack4x8snorm",
            "unpack2x16float",
            "pack2x16float",
            "pack4x8unorm",
            "determinant",
            "bitcast<u32>",
        ),
    ),
    (
        *(
            "min",
            "max",
            "pow",
            "atan2",
            "step",
            "dot",
            "distance",
            "reflect",
            "ldexp",
            "cross",
            "dot4I8Packed",
        ),
        *("dot4U8Packed", "subgroupBroadcast", "subgroupShuffle", "outerProduct"),
    ),
    ("fma", "clamp", "mix", "select", "smoothstep", "extractBits", "faceForward", "refract", "insertBits"),
    (
        *("atomicAdd", "atomicMax", "atomicSub", "atomicXor", "atomicExchange", "atomicStore", "atomicLoad"),
        *("atomicCompareExchangeWeak",),
    ),
    ("workgroupBarrier", "storageBarrier", "subgroupBarrier", "textureBarrier"),
    ("break", "continue", "return", "discard"),
)
SIMILAR = {word: kind for kind in KINDS for word in kind}


def seeds() -> list[Kernel]:
    """Kernels to begin with: a few written as users write them, and variants of webgrad's own."""
    from webgrad.wgsl.template import KERNELS, load_template, template_names
    from webgrad.wgsl.variants import variant_keys

    found: list[Kernel] = [(text, {}) for text in OWN]
    for name in template_names():
        keys = list(variant_keys(name))
        for entry, defines in keys[:: max(1, len(keys) // 3)][:3]:
            text = load_template(name, entry, **defines).text
            if len(text) <= LONGEST:
                found.append((text, {}))
        source = (KERNELS / name).read_text("utf-8")
        if keys and len(source) <= LONGEST:
            found.append((source, keys[-1][1]))
    return found


# Changes

Change = Callable[[random.Random, Words, Words], None]


def take_out(generator: random.Random, words: Words, _: Words) -> None:
    at = generator.randrange(len(words))
    del words[at : at + generator.choice((1, 1, 2, 5, 20))]


def put_in(generator: random.Random, words: Words, _: Words) -> None:
    words.insert(generator.randrange(len(words)), f" {generator.choice(INSERTED)} ")


def put_over(generator: random.Random, words: Words, _: Words) -> None:
    words[_spoken(generator, words)] = generator.choice(INSERTED)


def put_similar(generator: random.Random, words: Words, _: Words) -> None:
    """A type, an operator or a function becomes another of its kind; or a name becomes another name."""
    places = [at for at, word in enumerate(words) if word in SIMILAR]
    if places:
        at = generator.choice(places)
        words[at] = generator.choice(SIMILAR[words[at]])


def rename(generator: random.Random, words: Words, _: Words) -> None:
    names = [at for at, word in enumerate(words) if word.isidentifier() and word not in SIMILAR]
    if names:
        words[generator.choice(names)] = words[generator.choice(names)]


def exchange(generator: random.Random, words: Words, _: Words) -> None:
    a, b = _spoken(generator, words), _spoken(generator, words)
    words[a], words[b] = words[b], words[a]


def copy_over(generator: random.Random, words: Words, other: Words) -> None:
    words[_spoken(generator, words)] = other[_spoken(generator, other)]


def splice(generator: random.Random, words: Words, other: Words) -> None:
    start = generator.randrange(len(other))
    at = generator.randrange(len(words))
    words[at : at + generator.randrange(30)] = other[start : start + generator.randint(1, 60)]


def repeat(generator: random.Random, words: Words, _: Words) -> None:
    at = generator.randrange(len(words))
    part = words[at : at + generator.randint(1, 12)]
    words[at:at] = part * generator.choice((1, 2, 10, 300))


def change_number(generator: random.Random, words: Words, _: Words) -> None:
    numbers = [at for at, word in enumerate(words) if word[0].isdigit()]
    if numbers:
        at = generator.choice(numbers)
        words[at] = generator.choice(("0", "1", "-1", "31", "32", "63", "64", "65536", "4294967296")) + (
            generator.choice(("", "u", "i", "f", "h", ".0", "lu"))
        )


def truncate(generator: random.Random, words: Words, _: Words) -> None:
    del words[generator.randrange(1, len(words) + 1) :]


CHANGES: tuple[Change, ...] = (
    *(put_similar, put_similar, put_similar, put_similar, put_similar, put_similar),
    *(change_number, change_number, change_number, rename, rename, rename),
    *(take_out, put_in, put_over, exchange, copy_over, splice, repeat, truncate),
)


def _spoken(generator: random.Random, words: Words) -> int:
    """Where a word or a sign is, not a space, if a few tries find one."""
    tries = [generator.randrange(len(words)) for _ in range(4)]
    return next((at for at in tries if not words[at].isspace()), tries[0])


def changed(seed: int, sound: Sequence[Kernel]) -> Kernel:
    """The kernel of this seed: the same one again for the same seed."""
    generator = random.Random(seed)
    text, defines = sound[seed % len(sound)]
    words = WORD.findall(text)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 6))):
        if words:
            generator.choice(CHANGES)(generator, words, WORD.findall(generator.choice(sound)[0]))
    if defines and generator.random() < 0.2:
        defines = {
            **defines,
            generator.choice(list(defines)): generator.choice(("0", "-1", "f64", "99", "a b")),
        }
    return "".join(words), defines


def start(folder: Path) -> Case:
    """A function that compiles the kernel of a seed, and launches it."""
    sound = seeds()
    device = wg.open_device("webgpu")
    assert isinstance(device, wg.Device)
    running = folder / ENDLESS

    def case(seed: int) -> str:
        text, defines = changed(seed, sound)
        try:
            kernel = wg.kernel(text, defines=dict(defines), device=device)
            sizes = [max(binding.bytes, BUFFER) for binding in kernel.program.bindings]
            if max(sizes, default=0) > LARGEST:
                return "compiled"
            running.touch()
            try:
                launch(device, kernel, sizes)
            finally:
                running.unlink()
        except wg.WebgradError as error:
            return type(error).__name__
        return "compiled, launched"

    return case


def launch(device: wg.Device, kernel: wg.Kernel, sizes: Sequence[int]) -> None:
    """One workgroup over buffers of zeros, all parameters zero; to its end."""
    params = {field.name: _zero(field.type) for field in kernel.program.params}
    kernel(*(device.upload(bytes(-(-size // 256) * 256)) for size in sizes), grid=1, **params)
    device.synchronize()


def _zero(kind: str) -> int | tuple[int, ...]:
    return (0,) * int(kind[3]) if kind.startswith("vec") else 0
