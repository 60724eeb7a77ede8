"""A hundred faults to plant, one row each: file, text, what takes its place, and what that breaks.

Each is a mistake that somebody could make: an operand swapped, a tail forgotten, a key that lacks a part. The
text of a row occurs exactly once in its file, which tests/scripts/test_mutants.py checks; where code changes,
the row changes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]

Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of one file."""

    file: str
    old: str
    new: str
    what: str
    tests: tuple[str, ...] = ()  # to be tried after those of the file's name, before all others


def planted(file: str, *rows: Row, tests: tuple[str, ...] = ()) -> tuple[Fault, ...]:
    """The faults of one file; `tests` are those that are about it by another name."""
    return tuple(Fault(f"webgrad/{file}", old, new, what, tests) for old, new, what in rows)


OPS = (
    *planted(
        "ops/maps.py",
        (
            "np.copyto(result, np.abs(base), where=ends & np.equal(exponent, 0.5))",
            "pass",
            "(-inf) ** 0.5 is NaN where exponents are one number",
        ),
        (
            "return np.where(np.isinf(a) | np.isinf(b), a / b, result)",
            "return np.where(np.isinf(a), a / b, result)",
            "floor division by infinity",
        ),
        (
            "left = np.where(exponent < 0, exponent & 1, exponent)",
            "left = np.where(exponent < 0, 0, exponent)",
            "(-1) to a negative odd power is 1",
        ),
        (
            "np.where(np.signbit(x), small, x.dtype.type(1)) / (1 + small)",
            "np.where(np.signbit(x), x.dtype.type(1), small) / (1 + small)",
            "sigmoid is mirrored",
        ),
        (
            "return np.where(x < 0, 2 - near, near)",
            "return np.where(x < 0, 1 - near, near)",
            "erfc of negative numbers",
        ),
        (
            "return np.where(np.isneginf(x), 0, wide * share).astype(x.dtype)",
            "return (wide * share).astype(x.dtype)",
            "gelu (tanh) of -inf is NaN",
        ),
        (
            '_compare("less_equal", "less_equal", "<=", "(!{0} | {1})")',
            '_compare("less_equal", "less_equal", "<=", "(!{0} & {1})")',
            "<= of equal bools in kernels",
        ),
        tests=("tests/ops/test_special_cases.py", "tests/properties/test_table.py"),
    ),
    *planted(
        "ops/maps.py",
        ('gradient=("g", "-g")', 'gradient=("g", "g")', "a - b has no minus in its gradient by b"),
        (
            'gradient=("g / b", "-g * y / b")',
            'gradient=("g / b", "-g * y / a")',
            "the gradient of a / b by b divides by a",
        ),
        (
            'gradient=("g * b", "g * a")',
            'gradient=("g * a", "g * b")',
            "the gradients of a product are swapped",
        ),
        (
            'gradient=("0", "where(a, g, 0.0)", "where(a, 0.0, g)")',
            'gradient=("0", "where(a, g, 0.0)", "where(a, g, 0.0)")',
            "where sends the gradient of its third operand by the second's condition",
        ),
        tests=("tests/gradients/test_table.py",),
    ),
    *planted(
        "ops/maps.py",
        (
            'gradient=("where(a < b, 0.0, g)", "where(y <= a, 0.0, g)")',
            'gradient=("where(a <= b, 0.0, g)", "where(y <= a, 0.0, g)")',
            "clamp has no gradient at its lower bound",
        ),
        tests=("tests/gradients/test_ties.py",),
    ),
    *planted(
        "ops/gradients.py",
        (
            "where(a == b, g * 0.5, g)",
            "where(a == b, g, g)",
            "of equal operands of maximum each has all of the gradient",
        ),
        ("origin = square == 0", "origin = square < 0", "the gradient of atan2(0, 0) is NaN"),
        ("level = (a == 0) & (b >= 0)", "level = (a == 0) & (b > 0)", "0 ** b has an infinite gradient at 0"),
        tests=("tests/gradients/test_ties.py", "tests/gradients/test_composed.py"),
    ),
    *planted(
        "ops/activations.py",
        (
            "(own, lambda g: g * sigmoid(-own))",
            "(own, lambda g: where(own == 0, 0.0, g * sigmoid(-own)))",
            "logsigmoid and losses of logits have no gradient at 0",
        ),
        tests=("tests/gradients/test_ties.py", "tests/ops/test_losses.py"),
    ),
    *planted(
        "ops/elementwise.py",
        (
            "(second, lambda g: g * sigmoid(_difference(second, first)))",
            "(second, lambda g: g * sigmoid(_difference(first, second)))",
            "logaddexp's gradients are those of its first operand",
        ),
        tests=("tests/gradients/test_composed.py",),
    ),
    *planted(
        "ops/pytorch.py",
        (
            'return where(mask, Tensor(constant("masked_fill", number, x.dtype, x.device)), x)',
            "return where(mask, number, x)",
            "masked_fill of bools with a number gives integers",
        ),
    ),
    *planted(
        "ops/scans.py",
        ("if n == 0:", "if n < 0:", "diff of no differences joins what is put before and after"),
    ),
    *planted(
        "ops/reductions.py",
        (
            'return _over(fold("sum", centred * centred, axes, keepdims), _count(x, axes) - correction)',
            'return _over(fold("sum", centred * centred, axes, keepdims), _count(x, axes))',
            "var forgets its correction",
        ),
        ("hit = hit | isnan(x)", "hit = hit & ~isnan(x)", "argmax does not find NaN"),
        (
            "shift = where(isfinite(largest), largest, 0.0)",
            "shift = largest",
            "logsumexp of infinities is NaN",
        ),
        (
            'return fold("max" if ord > 0 else "min", absolute(x), axes, keepdims)',
            'return fold("max" if ord > 0 else "min", x, axes, keepdims)',
            "the infinity norm of negative numbers",
        ),
        (
            "if x.size == 0 and 0 not in _left(x.shape, axes):",
            "if x.size == 0:",
            "max over an axis that is not empty of a tensor without elements is refused",
        ),
        (
            'return converted(x, dtypes.float32) if x.dtype.kind == "f" and x.dtype.itemsize == 2 else x',
            "return x",
            "half floats are added in half precision",
        ),
    ),
    *planted(
        "ops/sorting.py",
        (
            "by_high = primitives.sort_order(primitives.take_along(high, by_low, last))",
            "by_high = primitives.sort_order(high)",
            "64-bit keys are sorted by their two halves apart",
        ),
        (
            "rising = primitives.sort_order(primitives.cast(chosen, dtypes.uint32))",
            "rising = primitives.iota(count, dtypes.int32, keys.sig.device)\n"
            "    rising = primitives.expand(rising, (*rows, count))",
            "topk: blocks are not put in order, so ties are not",
        ),
        ('return elementwise(TABLE["bitwise_xor"], bits, top)', "return bits", "negative integers come last"),
        (
            'inside = elementwise(TABLE["less_equal"], further, length)',
            'inside = elementwise(TABLE["less"], further, length)',
            "searchsorted never gives the end",
        ),
    ),
    *planted(
        "ops/scattering.py",
        (
            'inside = elementwise(TABLE["maximum"], elementwise(TABLE["minimum"], flat, side - 1), 0)',
            'inside = elementwise(TABLE["maximum"], elementwise(TABLE["minimum"], flat, side), 0)',
            "an index out of range writes to the next line",
        ),
        (
            "back = tuple(order.index(each) for each in range(x.ndim))",
            "back = order",
            "index_add along an inner axis is permuted back the wrong way",
        ),
    ),
    *planted(
        "ops/normalise.py",
        (
            "return centred * rsqrt(average(centred * centred, axes, keepdims=True) + eps)",
            "return centred * rsqrt(average(centred * centred, axes, keepdims=True))",
            "layer norm loses eps",
        ),
        (
            '_moved(op, "running_var", running_var, var * (count / (count - 1)), momentum)',
            '_moved(op, "running_var", running_var, var, momentum)',
            "the running variance is biased",
        ),
        (
            "new = old * (1 - momentum) + Tensor(primitives.reshape(batch.node, (batch.size,))) * momentum",
            "new = old * momentum + Tensor(primitives.reshape(batch.node, (batch.size,))) * (1 - momentum)",
            "momentum is the other way round",
        ),
        (
            "return tuple(shape[axis] for axis in axes), beside[min(axes, default=0) :]",
            "return tuple(shape[axis] for axis in axes), beside[max(axes, default=0) :]",
            "a weight of several axes broadcasts wrongly",
        ),
    ),
    *planted(
        "ops/windows.py",
        (
            "(max(0, -before), side - max(0, -after), 1)",
            "(max(0, -before), side - max(0, -before), 1)",
            "cropping takes the first width at both ends",
        ),
        (
            "place = window * stride + tap * dilation - padding",
            "place = window * stride + tap - padding",
            "fold forgets the dilation",
        ),
    ),
    *planted(
        "ops/products.py",
        (
            "return _inner(conj(moveaxis(a, first, -1)), moveaxis(b, second, -1))",
            "return _inner(moveaxis(a, first, -1), moveaxis(b, second, -1))",
            "vecdot of complex numbers is not conjugated",
        ),
        ("return tensordot(a, b, ((-1,), (-2,)))", "return matmul(a, b)", "dot of many axes broadcasts"),
        (
            "first, second = list(range(a.ndim - count, a.ndim)), list(range(count))",
            "first, second = list(range(a.ndim - count, a.ndim)), list(reversed(range(count)))",
            "tensordot pairs axes backwards",
        ),
    ),
    *planted(
        "ops/einsum.py",
        (
            "(a, first, rows), (b, second, columns) = (b, second, columns), (a, first, rows)",
            "rows, columns = columns, rows",
            "einsum swaps rows and columns but not operands",
        ),
        (
            "sides[label] = side if known == 1 else known",
            "sides[label] = known",
            "einsum's axis of side 1 does not broadcast",
        ),
        (
            "hidden = [len(_LETTERS) + each for each in range(rank - length, rank)] if dots else []",
            "hidden = [len(_LETTERS) + each for each in range(length)] if dots else []",
            "axes under ... are aligned at the first",
        ),
        tests=("tests/ops/test_products.py",),
    ),
    *planted(
        "ops/convolution.py",
        (
            "return tuple((each // 2, each - each // 2) for each in total)",
            "return tuple((each - each // 2, each // 2) for each in total)",
            "padding same puts the odd element first",
        ),
        (
            "(side - 1) * step - 2 * less + span + extra",
            "(side - 1) * step - 2 * less + span",
            "output_padding is forgotten",
        ),
    ),
    *planted(
        "ops/attention.py",
        (
            "node = primitives.cast(mask.node, wide)",
            "node = primitives.cast(mask.node, dtypes.float32)",
            "a float64 mask is rounded to float32",
        ),
        (
            "mask = where(mask, 0.0, -math.inf)",
            "mask = where(mask, -math.inf, 0.0)",
            "a mask of bools hides what it shows",
        ),
    ),
    *planted(
        "ops/composed_attention.py",
        (
            "of_scores = share * (_mixed(wide, where(there, v, 0.0).mT) - along)",
            "of_scores = share * _mixed(wide, where(there, v, 0.0).mT)",
            "attention's gradient forgets that weights sum to 1",
        ),
        (
            "seen = seen & (at > place - window)",
            "seen = seen & (at >= place - window)",
            "the window of attention is one too wide in gradients",
        ),
        tests=("tests/gradients/test_composed.py", "tests/ops/test_attention.py"),
    ),
    *planted(
        "ops/pooling_gradients.py",
        (
            "later.append(wins if inside is None else wins | inside)",
            "later.append(wins)",
            "padding gets the gradient of a max pool of -inf",
        ),
        tests=("tests/ops/test_pooling.py", "tests/gradients"),
    ),
)

CPU = (
    *planted(
        "cpu/folds.py",
        (
            "return np.full([side for axis, side in enumerate(x.shape) if axis not in axes], start)",
            "return np.zeros([side for axis, side in enumerate(x.shape) if axis not in axes], dtype)",
            "a fold of nothing is 0, not the identity",
        ),
        (
            "last = b[..., : length - whole] if repeated else b[..., whole:]",
            "last = b[..., : length - whole]",
            "the tail of a dot product meets the head of its other row",
        ),
        (
            "if main != side:\n            sums",
            "if main > side:\n            sums",
            "the tail of a long sum is dropped",
        ),
        (
            "for each in others:\n        ufunc(result, terms[each], out=result)",
            "for each in others[1:]:\n        ufunc(result, terms[each], out=result)",
            "the third term of a short fold is dropped",
        ),
    ),
    *planted(
        "cpu/memory.py",
        (
            "if whole.shape == x.shape and whole.dtype == x.dtype and whole.flags.c_contiguous:",
            "if whole.shape == x.shape and whole.dtype == x.dtype:",
            "what is between two transposes of equal sides stays transposed",
        ),
        tests=("tests/cpu/test_transposes.py",),
    ),
    *planted(
        "cpu/ordering.py",
        (
            "line[zeros] = source[source == 0]",
            "line[zeros] = np.sort(source[source == 0])[::-1]",
            "zeros of both signs do not keep their order",
        ),
        (
            'flip = np.uint8(128 if line.dtype.kind == "i" else 0)',
            "flip = np.uint8(0)",
            "negative bytes are sorted last",
        ),
        (
            "positive = x + x.dtype.type(0)  # -0 becomes +0",
            "positive = x.copy()",
            "-0 comes before 0 where they are equal",
        ),
        (
            "start = 0 if descending else length - len(unknown)",
            "start = length - len(unknown)",
            "NaNs of a descending sort overwrite its end",
        ),
    ),
    *planted(
        "cpu/halves.py",
        (
            "if sizes.max() >= _INFINITE:",
            "if sizes.max() > _INFINITE:",
            "infinities of many half floats become 65536",
        ),
        (
            "_FIELDS = np.uint32(0x8FFFFFFF)",
            "_FIELDS = np.uint32(0x0FFFFFFF)",
            "many half floats lose their sign",
        ),
    ),
    *planted(
        "cpu/scans.py",
        (
            "runs[:, 0] += given[:, None]",
            "runs[:, 0] += given[:, None] * 0",
            "a chunk's first run forgets what came before",
        ),
        (
            "if not np.isfinite(before[:, -1]).all():\n        return False",
            "if False:\n        return False",
            "running sums by products spread infinities backwards",
        ),
        (
            "rest += before[:, -1:]",
            "rest += before[:, -2:-1]",
            "the rest of a running sum begins a run too low",
        ),
        (
            "result[...] = turned.reshape(rows, columns, length).transpose(0, 2, 1)",
            "result[...] = turned.reshape(rows, length, columns)",
            "scans of few columns stay transposed",
        ),
        (
            "count = -(-side // length) - 1",
            "count = side // length - 1",
            "the last whole chunk is not counted where another one follows",
        ),
    ),
)

GRAPHS = (
    *planted(
        "schedule/split.py",
        (
            "if runs and runs[-1][-1] == axis - 1:",
            "if runs:",
            "axes that do not lie side by side are folded as one",
        ),
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
            "if set(other.outputs) & set(group.reads) and not _in_place(graph, group, set(other.outputs)):",
            "if False:",
            "maps are merged although one reads the other's result at another place",
        ),
        (
            "if any(each != target and above[each] >> target & 1 for each in direct):",
            "if False:",
            "a kernel is merged with one that it needs through another",
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
        "lower/pull.py",
        (
            "if not pieces:",
            "if False:",
            "a fold over joined empty values is not lowered",
        ),
        tests=("tests/evaluate/test_gpu_plan.py", "tests/lower/test_lowering.py"),
    ),
    *planted(
        "lower/overwrite.py",
        ("and readers[old] == 1\n", "", "a value is overwritten that another group still reads"),
        ("and old not in elsewhere\n", "", "a value is overwritten that is read at other places"),
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
            "if side != 1:\n            result = index * stride + result\n        stride *= side",
            "stride *= side\n        if side != 1:\n            result = index * stride + result",
            "the stride of an axis is multiplied by its own side",
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
            '(b.data, each.data) in ((0, "+"), (0, "-"), (1, "*"), (1, "/"), (1, "%"))',
            "x % 1 is taken for x",
        ),
        (
            'elif each.op not in _EFFECTS and each.op not in ("register", "read"):',
            'elif each.op not in _EFFECTS and each.op not in ("register",):',
            "reads of a register that changed in between are shared",
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
        "runtime/arena.py",
        ("generations[index] += 1\n", "pass\n", "a freed handle stays valid"),
        (
            "if self._generations[index] == handle >> INDEX_BITS:\n                return",
            "if self._values[index] is not None:\n                return",
            "a stale handle gives another's value",
        ),
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
        (".tobytes(), sizes, bytes(", ".tobytes(), sizes, len(", "what is held is no part of a queue's key"),
        (
            "and sizes[slot] == sizes[output] and bases.count(slot) == 1:",
            "and sizes[slot] == sizes[output]:",
            "an input that is read twice is overwritten",
        ),
        (
            "if slot in dying and physical[slot] and sizes",
            "if physical[slot] and sizes",
            "an input that is needed later is overwritten",
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
            "c_##i += a_##i.x * b_0 + a_##i.y * b_1 + a_##i.z * b_2 + a_##i.w * b_3;",
            "c_##i += a_##i.x * b_0 + a_##i.y * b_1 + a_##i.z * b_2;",
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
            "TARGET[i / PER_WORD] = (word & ~(MASK << place)) | (bits << place);",
            "TARGET[i / PER_WORD] = word | (bits << place);",
            "packed elements are joined with what was there",
        ),
        (
            "if (row >= first && row < stop) {",
            "if (row >= first) {",
            "rows of later threads are updated twice",
        ),
        tests=("tests/kernels/test_scattering.py",),
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
            "let inside = clamp(x, F(-88.0), F(89.0));",
            "let inside = clamp(x, F(-88.0), F(87.0));",
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
    ),
)

FAULTS = (*OPS, *CPU, *GRAPHS, *RUNTIME, *KERNELS, *WGSL)
