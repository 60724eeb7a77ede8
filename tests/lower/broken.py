"""Kernels that break the grammar, one for each rule, with a word of what the verifier says to it."""

from __future__ import annotations

from collections.abc import Callable

from tests.lower.helpers import F32, F32x4, kernel_of
from webgrad import dtypes
from webgrad.lower.ir import BOOL, U32, Buffer, Hole, Instruction, Kernel, Template, Type
from webgrad.ops.table import TABLE

__all__ = ["BAD", "Bad", "no_such_buffer"]

I = Instruction  # noqa: E741
Bad = Callable[[], Kernel]
HALF = (Buffer(0, dtypes.float16, 8), Buffer(1, dtypes.float16, 8, written=True))


def number(data: int = 0) -> Instruction:
    return I("const", U32, (), data)


def loaded(width: int = 1) -> tuple[Instruction, Instruction]:
    at = number()
    return at, I("load", Type("f32", width), (at,), 0)


def unknown() -> Kernel:
    return kernel_of(I("jump", None))


def too_few_arguments() -> Kernel:
    a = number()
    return kernel_of(a, I("arithmetic", U32, (a,), "+"))


def value_without_type() -> Kernel:
    a = number()
    return kernel_of(a, I("load", None, (a,), 0))


def type_without_value() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("store", F32, (a, x), 1))


def used_before_made() -> Kernel:
    a = number()
    return kernel_of(I("load", F32, (a,), 0), a)


def used_outside_of_its_loop() -> Kernel:
    zero = number()
    loop = I("loop", U32, (zero, zero, zero))
    inner = I("arithmetic", U32, (loop, zero), "+")
    end = I("end_loop", None, (loop,))
    return kernel_of(zero, loop, inner, end, I("load", F32, (inner,), 0))


def loop_variable_outside_of_its_loop() -> Kernel:
    zero = number()
    loop = I("loop", U32, (zero, zero, zero))
    return kernel_of(zero, loop, I("end_loop", None, (loop,)), I("load", F32, (loop,), 0))


def loop_without_end() -> Kernel:
    zero = number()
    return kernel_of(zero, I("loop", U32, (zero, zero, zero)))


def crossed_ends() -> Kernel:
    zero = number()
    a, b = (I("loop", U32, (zero, zero, zero)) for _ in range(2))
    return kernel_of(zero, a, b, I("end_loop", None, (a,)), I("end_loop", None, (b,)))


def end_of_the_other_kind() -> Kernel:
    zero = number()
    loop = I("loop", U32, (zero, zero, zero))
    return kernel_of(zero, loop, I("end_if", None, (loop,)))


def loop_over_floats() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("loop", U32, (a, x, a)))


def arithmetic_of_floats() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("arithmetic", U32, (a, x), "+"))


def widths_that_differ() -> Kernel:
    a, x = loaded()
    y = I("load", F32x4, (a,), 0)
    return kernel_of(a, x, y, I("apply", F32x4, (x, y), TABLE["add"]))


def select_of_two_types() -> Kernel:
    a, x = loaded()
    yes = I("compare", BOOL, (a, a), "<")
    return kernel_of(a, x, yes, I("select", F32, (a, x, yes)))


def select_by_a_number() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("select", F32, (x, x, a)))


def no_such_buffer() -> Kernel:
    a = number()
    return kernel_of(a, I("load", F32, (a,), 2))


def float_as_index() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("load", F32, (x,), 0))


def buffer_of_another_type() -> Kernel:
    a = number()
    return kernel_of(a, I("load", Type("i32"), (a,), 0))


def store_to_an_input() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("store", None, (a, x), 0))


def store_of_one_half() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("store", None, (a, x), 1), buffers=HALF)


def write_of_another_type() -> Kernel:
    a, x = loaded()
    register = I("register", F32, (x,))
    return kernel_of(a, x, register, I("write", None, (register, a)))


def write_to_what_is_no_register() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("write", None, (x, x)))


def read_of_what_is_no_register() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("read", F32, (x,)))


def read_of_another_type() -> Kernel:
    a, x = loaded()
    register = I("register", F32, (x,))
    return kernel_of(a, x, register, I("read", F32x4, (register,)))


def condition_that_is_a_number() -> Kernel:
    a = number()
    condition = I("if", None, (a,))
    return kernel_of(a, condition, I("end_if", None, (condition,)))


def splat_of_four() -> Kernel:
    a, x = loaded(4)
    return kernel_of(a, x, I("splat", F32x4, (x,)))


def vector_of_vectors() -> Kernel:
    a, x = loaded(4)
    return kernel_of(a, x, I("vectorize", F32x4, (x, x, x, x)))


def fifth_lane() -> Kernel:
    a, x = loaded(4)
    return kernel_of(a, x, I("extract", F32, (x,), 4))


def lane_of_one() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("extract", F32, (x,), 0))


def no_such_scalar() -> Kernel:
    return kernel_of(I("scalar", F32, (), 0))


def cast_to_another_type() -> Kernel:
    a, x = loaded()
    return kernel_of(a, x, I("cast", F32, (x,), (dtypes.float32, dtypes.int32, False)))


def width_of_three() -> Kernel:
    a, x = loaded(3)
    return kernel_of(a, x)


def barrier_that_not_all_threads_reach() -> Kernel:
    a, x = loaded()
    local = I("thread", U32, (), "local")
    some = I("compare", BOOL, (local, a), "<")
    condition = I("if", None, (some,))
    end = I("end_if", None, (condition,))
    return kernel_of(a, x, local, some, condition, I("combine", F32, (x,), TABLE["add"]), end)


def hole_without_its_result() -> Kernel:
    hole = Hole("hole_a", (("row", U32),), (), number())
    return Kernel("test", (), (), (), 8, 1, Template("matmul.pwgsl", (), ()), (hole,))


def hole_that_breaks_the_grammar() -> Kernel:
    hole = Hole("hole_a", (("row", U32),), (I("jump", None),), None)
    return Kernel("test", (), (), (), 8, 1, Template("matmul.pwgsl", (), ()), (hole,))


BAD: dict[Bad, str] = {
    unknown: "no such instruction",
    too_few_arguments: "1 arguments, not 2",
    value_without_type: "a value without type",
    type_without_value: "a type without value",
    used_before_made: "before it is made",
    used_outside_of_its_loop: "outside of its block",
    loop_variable_outside_of_its_loop: "outside of its block",
    loop_without_end: "loop without an end",
    crossed_ends: "ends what is not open",
    end_of_the_other_kind: "ends what is not open",
    loop_over_floats: "a loop over",
    arithmetic_of_floats: "index arithmetic of",
    widths_that_differ: "widths differ",
    select_of_two_types: "select of",
    select_by_a_number: "select of",
    no_such_buffer: "no such buffer",
    float_as_index: "an index that is not a u32",
    buffer_of_another_type: "in a buffer of float32",
    store_to_an_input: "writes to what is only read",
    store_of_one_half: "a single element of a packed dtype",
    write_of_another_type: "a register of f32 takes u32",
    write_to_what_is_no_register: "instruction",
    read_of_what_is_no_register: "instruction",
    read_of_another_type: "instruction",
    condition_that_is_a_number: "instruction",
    splat_of_four: "instruction",
    vector_of_vectors: "instruction",
    fifth_lane: "instruction",
    lane_of_one: "instruction",
    no_such_scalar: "instruction",
    cast_to_another_type: "instruction",
    width_of_three: "instruction",
    barrier_that_not_all_threads_reach: "instruction",
    hole_without_its_result: "hole_a: its result is not in it",
    hole_that_breaks_the_grammar: "hole_a, instruction 0",
}
