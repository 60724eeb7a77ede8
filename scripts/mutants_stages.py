"""Faults of the later stages, one row each: graphs, schedules, kernels, WGSL and the runtime.

`mutants_table.py` has those of ops and of the cpu, and says what a row is.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STAGES", "Fault", "planted"]

Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of one file."""

    file: str
    old: str
    new: str
    what: str
    tests: tuple[str, ...] = ()  # to be tried before those of the file's name
    in_results: bool = True  # False: no number shows it, only counts, or what a guard lets through


def planted(file: str, *rows: Row, tests: tuple[str, ...] = (), in_results: bool = True) -> tuple[Fault, ...]:
    """The faults of one file; `tests` are those that are about it by another name."""
    return tuple(Fault(f"webgrad/{file}", old, new, what, tests, in_results) for old, new, what in rows)


GRAPHS = (
    *planted(
        "schedule/sorting.py",
        (
            'by_high = graph.make(TABLE["sort_order"], (moved,))',
            'by_high = graph.make(TABLE["sort_order"], (high,))',
            "64-bit keys are sorted by their two halves apart",
        ),
        (
            'chosen = graph.make(TABLE["take_along"], (chosen, rising), (last,))',
            'chosen = graph.make(TABLE["reshape"], (chosen,), (graph.sigs[chosen].shape,))',
            "topk: blocks are not put in order, so ties are not",
        ),
        (
            'return _with_number(graph, "bitwise_xor", bits, top)',
            "return bits",
            "negative integers come last",
        ),
        (
            'inside = _with_number(graph, "less_equal", found, length - step)',
            'inside = _with_number(graph, "less", found, length - step)',
            "searchsorted never gives the end",
        ),
    ),
    *planted(
        "schedule/axes.py",
        (
            "if runs and runs[-1][-1] == axis - 1:",
            "if runs:",
            "axes that do not lie side by side are folded as one",
        ),
    ),
    *planted(
        "schedule/split_reductions.py",
        (
            'tail = move("slice", flat, tail_shape, ((0, before, 1), (main, length, 1), (0, after, 1)))',
            'tail = move("slice", flat, tail_shape, ((0, before, 1), (0, length - main, 1), (0, after, 1)))',
            "the tail of a split fold is its head",
        ),
        (
            "chunk = length // parts // 4 * 4 or length // parts",
            "chunk = -(-length // parts)",
            "the parts of a split fold are longer than the whole",
        ),
    ),
    *planted(
        "schedule/merge.py",
        (
            "if any(each != target and above[each] >> target & 1 for each in direct):",
            "if False:",
            "a kernel is merged with one that it needs through another",
        ),
    ),
    *planted(
        "schedule/merge.py",
        (
            "if set(other.outputs) & set(group.reads) and not _reads_own(graph, group, set(other.outputs)):",
            "if False:",
            "maps are merged although one reads the other's result at another place",
        ),
        (
            "return folded_along(graph, other) == folded_along(graph, group)",
            "return True",
            "folds along different axes share a kernel",
        ),
        (
            "code.append((sig.op.name, sig.dtype.name, not sig.shape))",
            "code.append((sig.op.name, not sig.shape))",
            "groups of different dtypes count as alike",
        ),
        (
            "code.append(number in group.outputs)",
            "",
            "which nodes are stored is no part of a group's structure",
        ),
        in_results=False,
    ),
    *planted(
        "schedule/fuse.py",
        (
            "if each in stored:  # the fold of one before it",
            "if False:",
            "a fold that is stored for one operand is fused into another one too",
        ),
    ),
    *planted(
        "lower/whole_values.py",
        (
            "(source, made[place]))",
            "(made[place], source))",
            "what a result of a user's kernel begins with is written to",
        ),
        (
            "scalars=inputs[count:], checked=True",
            "scalars=inputs[count:][::-1], checked=True",
            "parameters of users' kernels are packed in the wrong order",
        ),
        tests=("tests/test_kernel_tensors.py",),
    ),
    *planted(
        "lower/pull.py",
        (
            "if not pieces:",
            "if False:",
            "a fold over joined empty values is not lowered",
        ),
        tests=("tests/evaluate/test_gpu_plan.py", "tests/lower/test_lowering.py"),
    ),
    *planted(
        "lower/in_place.py",
        ("and readers[leaf] == 1\n", "", "a value is overwritten that another group still reads"),
        ("and leaf not in elsewhere\n", "", "a value is overwritten that is read at other places"),
        (
            "waiting += graph.inputs[each] if each in group.inside else ()",
            "pass",
            "a value is overwritten of which an element is needed for something computed",
        ),
    ),
    *planted(
        "lower/index.py",
        (
            "quotient = quotient.shifted(-lift)",
            "quotient = quotient.shifted(lift)",
            "negative indices are divided too high",
        ),
        (
            'if atom.kind == "remainder" and atom.divisor % divisor == 0:  # of y % ab by a',
            'if atom.kind == "remainder":  # of y % ab by a',
            "(y % m) // d is simplified where d does not divide m",
        ),
        (
            "(x % (m * other.divisor)) * factor",
            "(x % other.divisor) * factor",
            "two remainders are joined into one that is too small",
        ),
        (
            "if size != 1:\n            result = index * stride + result\n        stride *= size",
            "stride *= size\n        if size != 1:\n            result = index * stride + result",
            "the stride of an axis is multiplied by its own size",
        ),
        (
            "if terms.get(quotient) == factor * m:",
            "if terms.get(quotient) is not None:",
            "a remainder and a quotient are joined whatever their factors",
        ),
        (
            "return self if divisor <= 1 else _divide(self, divisor)[0]",
            "return self if divisor <= 2 else _divide(self, divisor)[0]",
            "division by 2 is left out",
        ),
    ),
    *planted(
        "lower/passes.py",
        (
            '(b.data, each.data) in ((0, "+"), (0, "-"), (1, "*"), (1, "/"))',
            '(b.data, each.data) in ((0, "+"), (0, "-"), (1, "*"), (1, "/"), (1, "-"))',
            "x - 1 is taken for x",
        ),
        (
            "key = (each.op, each.type, each.data.__class__, each.data, *map(id, each.args))",
            "key = (each.op, each.type, each.data.__class__, *map(id, each.args))",
            "values that differ in a number only are shared",
        ),
        (
            'if each.op in ("end_loop", "end_if"):\n            scopes.pop()\n        elif',
            'if each.op in ("end_loop",):\n            scopes.pop()\n        elif',
            "values made inside of an if are used after it",
        ),
    ),
)

RUNTIME = (
    *planted(
        "runtime/pending.py",
        (".tobytes(), sizes, bytes(", ".tobytes(), sizes, len(", "what is held is no part of a queue's key"),
        tests=("tests/runtime/test_resolve.py", "tests/runtime/test_resolve_again.py"),
    ),
    *planted(
        "runtime/arena.py",
        ("generations[index] += 1\n", "pass\n", "a freed handle stays valid"),
    ),
    *planted(
        "runtime/arena.py",
        (
            "if self._generations[index] == handle >> INDEX_BITS:\n                return",
            "if self._values[index] is not None:\n                return",
            "a stale handle gives another's value",
        ),
        in_results=False,
    ),
    *planted(
        "runtime/pool.py",
        ("self._on_evict(buffer)\n", "pass\n", "recorded queues keep buffers that are gone"),
        (
            "candidates = sorted(self.free - self.protected,",
            "candidates = sorted(self.free,",
            "buffers of the queue that is being resolved are evicted",
        ),
        ("self.bytes_free += physical.size\n", "pass\n", "buffers given back are not counted as free"),
    ),
    *planted(
        "runtime/resolve.py",
        (
            "if resolved.inputs == inputs and resolved.needed <= free:",
            "if resolved.needed <= free:",
            "a queue is replayed with other inputs' buffers",
        ),
        (
            "if resolved.inputs == inputs and resolved.needed <= free:",
            "if resolved.inputs == inputs:",
            "a queue is replayed while its buffers hold something else",
        ),
        (
            "and bases.count(slots[old]) == 1\n",
            "",
            "an input that is read twice is donated",
        ),
        (
            "slots[old] in dying\n                and physical",
            "physical",
            "an input that is needed later is donated",
        ),
        (
            "if not held[slot]:\n                        dying[position].append(slot)",
            "dying[position].append(slot)",
            "buffers that somebody holds are given back",
        ),
        (
            "for position in range(len(commands) - 1, -1, -1):",
            "for position in range(len(commands)):",
            "buffers are given back after their first use",
        ),
        (
            "kept = [each for each in variants if buffer not in each.touched]",
            "kept = list(variants)",
            "queues are remembered whose buffers are gone",
        ),
    ),
)

KERNELS = (
    *planted(
        "kernels/matmul.pwgsl",
        (
            "c_##i += a_##i.w * b_3;",
            "",
            "a tile's fourth step is not added",
        ),
        (
            "        }\n        workgroupBarrier();\n    }",
            "        }\n    }",
            "tiles are filled again while others still read them",
        ),
        (
            "results[2 * r + 1] = right_##r;",
            "results[2 * r + 1] = left_##r;",
            "the right columns of a block are its left ones",
        ),
        tests=("tests/lower/test_contract.py",),
    ),
    *planted(
        "kernels/scatter.pwgsl",
        (
            "fn row_of(i: u32) -> u32 { return u32(clamp(index[i], 0, i32(p.rows) - 1)); }",
            "fn row_of(i: u32) -> u32 { return u32(min(index[i], i32(p.rows) - 1)); }",
            "negative indices are not clamped",
        ),
        (
            "y[i / PER_WORD] = (word & ~(MASK << place)) | (bits << place);",
            "y[i / PER_WORD] = word | (bits << place);",
            "packed elements are joined with what was there",
        ),
        (
            "if (row >= first && row < stop) {",
            "if (row >= first) {",
            "rows of later threads are updated twice",
        ),
        tests=("tests/functions/array/test_scatters.py",),
    ),
)

WGSL = (
    *planted(
        "wgsl/library.wgsl",
        (
            "fn wg_maximum(a: F, b: F) -> F { return wg_keep_nan(a, wg_keep_nan(b, max(a, b))); }",
            "fn wg_maximum(a: F, b: F) -> F { return wg_keep_nan(a, max(a, b)); }",
            "maximum drops a NaN of its second operand",
        ),
        (
            "fn wg_sign(x: F) -> F { return wg_keep_nan(x, sign(x)); }",
            "fn wg_sign(x: F) -> F { return sign(x); }",
            "the sign of NaN is a number",
        ),
        (
            "return select(quotient - select(I(0), I(1), down), I(0), zero);",
            "return select(quotient, I(0), zero);",
            "integers are divided towards 0",
        ),
        (
            "let result = wg_with_sign(select(rest, wg_abs(b) - rest, across), b);",
            "let result = wg_with_sign(select(rest, wg_abs(b) - rest, across), a);",
            "a remainder has the dividend's sign",
        ),
        (
            "return select(result, I(0), below & (abs(base) != I(1)));",
            "return select(result, I(0), below);",
            "1 to a negative power is 0",
        ),
        (
            "fn wg_less(a: F, b: F) -> B { return (a < b) & wg_ordered(a, b); }",
            "fn wg_less(a: F, b: F) -> B { return !(a >= b); }",
            "NaN is less than anything",
        ),
        (
            "return select(a << (count & U(31u)), I(0), count > U(31u));",
            "return a << (count & U(31u));",
            "shifts by 32 and more wrap",
        ),
        (
            "let inside = clamp(x, F(-104.0), F(89.0));",
            "let inside = clamp(x, F(-104.0), F(87.0));",
            "exp of 88 is too small",
        ),
        (
            "return wg_keep_nan(x, select(result, x, abs(x) < F(1e-30)));",
            "return wg_keep_nan(x, result);",
            "expm1 of the smallest numbers and of -0",
        ),
        (
            "return wg_keep_nan(x, wg_with_sign(select(far, near, size < F(0.625)), x));",
            "return wg_keep_nan(x, select(far, near, size < F(0.625)));",
            "tanh of negative numbers is positive",
        ),
        (
            "x += key2; y += key0 + U(2u);",
            "x += key2; y += key0 + U(1u);",
            "random bits differ from those of the cpu",
        ),
        (
            "return bitcast<F>(wg_size_bits(size) | (bitcast<U>(sign) & U(0x80000000u)));",
            "return select(size, -size, sign < F(0.0));",
            "the sign of -0 is lost",
        ),
        tests=(
            "tests/ops/test_maps.py",
            "tests/functions/test_random.py",
            "tests/functions/array/test_special_cases.py",
        ),
    ),
)

STAGES = (*GRAPHS, *RUNTIME, *KERNELS, *WGSL)
