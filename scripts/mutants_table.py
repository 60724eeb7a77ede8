"""A hundred faults to plant, one row each: file, text, what takes its place, and what that breaks.

Each is a mistake that somebody could make: an operand swapped, a tail forgotten, a key that lacks a part. The
text of a row occurs exactly once in its file, which tests/scripts/test_mutants.py checks; where code changes,
the row changes with it.
"""

from __future__ import annotations

from scripts.mutants_stages import STAGES, Fault, planted

__all__ = ["FAULTS", "Fault"]


OPS = (
    *planted(
        "ops/references.py",
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
    ),
    *planted(
        "ops/maps.py",
        ('"(!{0} | {1})"', '"(!{0} & {1})"', "<= of equal bools in kernels"),
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
        tests=("tests/gradients/test_kinks.py", "tests/gradients/test_ties.py"),
    ),
    *planted(
        "gradients/rules.py",
        (
            "where(a == b, g * 0.5, g)",
            "where(a == b, g, g)",
            "of equal operands of maximum each has all of the gradient",
        ),
        ("origin = square == 0", "origin = square < 0", "the gradient of atan2(0, 0) is NaN"),
        ("level = (a == 0) & (b >= 0)", "level = (a == 0) & (b > 0)", "0 ** b has an infinite gradient at 0"),
        tests=("tests/gradients/test_kinks.py", "tests/gradients/test_composed.py"),
    ),
    *planted(
        "functions/learning/activations.py",
        (
            "(own, lambda g: g * sigmoid(-own))",
            "(own, lambda g: where(own == 0, 0.0, g * sigmoid(-own)))",
            "logsigmoid and losses of logits have no gradient at 0",
        ),
        tests=("tests/gradients/test_composed.py", "tests/functions/learning/test_losses.py"),
    ),
    *planted(
        "functions/array/elementwise.py",
        (
            "(second, lambda g: g * sigmoid(_difference(second, first)))",
            "(second, lambda g: g * sigmoid(_difference(first, second)))",
            "logaddexp's gradients are those of its first operand",
        ),
        tests=("tests/gradients/test_composed.py",),
    ),
    *planted(
        "functions/array/pytorch.py",
        (
            'return where(mask, Tensor(constant("masked_fill", number, x.dtype, x.device)), x)',
            "return where(mask, number, x)",
            "masked_fill of bools with a number gives integers",
        ),
    ),
    *planted(
        "functions/array/scans.py",
        ("if n == 0:", "if n < 0:", "diff of no differences joins what is put before and after"),
    ),
    *planted(
        "functions/array/reductions.py",
        (
            "centred * centred, axes, keepdims), _count(x, axes) - correction)",
            "centred * centred, axes, keepdims), _count(x, axes))",
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
            "if x.size == 0 and 0 not in _shape_without(x.shape, axes):",
            "if x.size == 0:",
            "max over an axis that is not empty of a tensor without elements is refused",
        ),
        (
            "return converted(x, compute_dtype(x.dtype))",
            "return x",
            "half floats are added in half precision",
        ),
    ),
    *planted(
        "functions/array/scatters.py",
        (
            'elementwise(TABLE["minimum"], flat, max(size - 1, 0))',
            'elementwise(TABLE["minimum"], flat, size)',
            "an index out of range writes to the next line",
        ),
        (
            "back = tuple(order.index(each) for each in range(x.ndim))",
            "back = order",
            "index_add along an inner axis is permuted back the wrong way",
        ),
    ),
    *planted(
        "functions/learning/normalisation.py",
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
            "return tuple(shape[axis] for axis in axes), broadcastable[min(axes, default=0) :]",
            "return tuple(shape[axis] for axis in axes), broadcastable[max(axes, default=0) :]",
            "a weight of several axes broadcasts wrongly",
        ),
    ),
    *planted(
        "functions/convolution/windows.py",
        (
            "(max(0, -before), length - max(0, -after), 1)",
            "(max(0, -before), length - max(0, -before), 1)",
            "cropping takes the first width at both ends",
        ),
        (
            "place = window * stride + tap * dilation - padding",
            "place = window * stride + tap - padding",
            "fold forgets the dilation",
        ),
    ),
    *planted(
        "functions/array/products.py",
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
        tests=("tests/linalg/test_products.py",),
    ),
    *planted(
        "functions/array/einsum.py",
        (
            "(a, first, rows), (b, second, columns) = (b, second, columns), (a, first, rows)",
            "rows, columns = columns, rows",
            "einsum swaps rows and columns but not operands",
        ),
        (
            "sizes[label] = size if known == 1 else known",
            "sizes[label] = known",
            "einsum forgets the sizes that it saw after a size of 1",
        ),
        (
            "hidden = [len(_LETTERS) + each for each in range(rank - length, rank)] if dots else []",
            "hidden = [len(_LETTERS) + each for each in range(length)] if dots else []",
            "axes under ... are aligned at the first",
        ),
        tests=("tests/functions/array/test_products.py",),
    ),
    *planted(
        "functions/convolution/convolution.py",
        (
            "return tuple((each // 2, each - each // 2) for each in total)",
            "return tuple((each - each // 2, each // 2) for each in total)",
            "padding same puts the odd element first",
        ),
        (
            "(size - 1) * step - 2 * less + span + extra",
            "(size - 1) * step - 2 * less + span",
            "output_padding is forgotten",
        ),
    ),
    *planted(
        "functions/learning/attention.py",
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
        "gradients/attention.py",
        (
            'of_scores = share * (of_share - fold("sum", share * of_share, (3,), keepdims=True))',
            "of_scores = share * of_share",
            "attention's gradient forgets that weights sum to 1",
        ),
        (
            "seen = seen & (at > place - window)",
            "seen = seen & (at >= place - window)",
            "the window of attention is one too wide in gradients",
        ),
        tests=("tests/gradients/test_composed.py", "tests/functions/learning/test_attention.py"),
    ),
    *planted(
        "gradients/pooling.py",
        (
            'fold("min", where(taps == Tensor(kept), places, end), axes)',
            'fold("max", where(taps == Tensor(kept), places, -1), axes)',
            "of equal elements that are the largest of a window the last one gets the gradient",
        ),
    ),
)

CPU = (
    *planted(
        "cpu/plan.py",
        (
            "and last[leaf].buffers.count(leaf) == 1",
            "and True",
            "a result takes the memory of a leaf that its step reads at two places",
        ),
        tests=("tests/cpu/test_plan.py", "tests/lower/test_in_place.py"),
    ),
    *planted(
        "cpu/room.py",
        (
            "life[each] = (life.get(each, (at, at))[0], at)",
            "life[each] = (at, at)",
            "a value's room is taken before its last reader had it",
        ),
        tests=("tests/cpu/test_plans.py",),
    ),
    *planted(
        "lower/lane_puller.py",
        (
            "self.builder.select(inside, part, value)",
            "self.builder.select(inside, value, part)",
            "of two parts of a concat the other one is taken",
        ),
        tests=("tests/cpu/test_plans.py",),
    ),
    *planted(
        "native/emit.py",
        (
            '{"maximum": 0, "minimum": 1, "logical_or": 0, "logical_and": 1}[name]',
            '{"maximum": 0, "minimum": 0, "logical_or": 0, "logical_and": 1}[name]',
            "the minimum of bools along lanes is always false",
        ),
        (
            "if across and self._mask is not None:",
            "if across and self._mask is None:",
            "what is behind the end of a row is folded with it",
        ),
        tests=("tests/cpu/test_plan.py", "tests/cpu/test_plans.py", "tests/lower/test_lanes.py"),
    ),
    *planted(
        "runtime/host_buffers.py",
        (
            "if whole.shape == x.shape and whole.dtype == x.dtype and whole.flags.c_contiguous:",
            "if whole.shape == x.shape and whole.dtype == x.dtype:",
            "what is between two transposes of equal sizes stays transposed",
        ),
        tests=("tests/runtime/test_host_buffers.py", "tests/cpu/test_transposes.py"),
    ),
    *planted(
        "reference/ordering.py",
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
        "native/templates/block_tiles.py",
        (
            'first = f(f"icmp eq i64 {at}, 0")',
            'first = "true"',
            "of long rows times many, only the last part is summed",
        ),
        tests=("tests/native/templates/test_blocks.py",),
    ),
    *planted(
        "native/templates/formats.py",
        (
            "_field(f, high, 2 * plane, 4, 48)",
            "_field(f, high, 2 * plane, 4, 16)",
            "Q6_K's weights lose a bit",
        ),
        tests=("tests/native/templates/test_blocks.py",),
    ),
    *planted(
        "reference/plan.py",
        (
            "(id(array) in taken or not is_own(array))",
            "id(array) in taken",
            "a view of a leaf is a result of the reference",
        ),
        (
            ".difference(self._roots)",
            "",
            "the reference lets results go",
        ),
        tests=("tests/cpu/test_plan.py", "tests/cpu/test_plans.py"),
    ),
    *planted(
        "reference/functions.py",
        (
            'by_bits = sig.op.name == "bitcast" or sig.op.name == "scatter_set"',
            'by_bits = sig.op.name == "scatter_set"',
            "the bits of half floats are those of float32",
        ),
        (
            'scatter_max": _scatter',
            'scatter_max": lambda sig: (partial(scatter, "add"), None)',
            "a maximum at computed places is a sum",
        ),
        tests=("tests/cpu/test_plans.py", "tests/reference/test_scattering.py"),
    ),
)

FAULTS = (*OPS, *CPU, *STAGES)
