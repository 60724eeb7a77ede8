"""Expressions of WGSL as functions over NumPy arrays, compiled for one processor and a number of lanes."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from webgrad.native.translation.translator import Code, Translator, Value, llvm_type

Array = npt.NDArray[Any]
SCALARS = {
    "float32": "f32",
    "float64": "f64",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "bool": "bool",
}
X86 = platform.machine().lower() in ("x86_64", "amd64")
PROCESSORS = ("host", "x86-64-v2", "x86-64-v3") if X86 else ("host",)


def _memory(scalar: str, width: int) -> str:
    return llvm_type(scalar, width).replace("i1", "i8") if scalar == "bool" else llvm_type(scalar, width)


Write = Callable[[Code, Sequence[Value]], Value]


def spelled(expression: str) -> Write:
    return lambda code, args: Translator(code).spelled(expression, args)


def function(
    name: str, write: Write, operands: Sequence[str], result: str, width: int
) -> tuple[str, set[str]]:
    """A loop over all elements, `width` at a time."""
    code, step = Code(), max(width, 1)
    counter = code.variable("i64", 8)
    code.do(f"store i64 0, ptr {counter}")
    code.do("br label %head")
    code.label("head")
    at = code.fresh(f"load i64, ptr {counter}")
    code.do(f"br i1 {code.fresh(f'icmp slt i64 {at}, %count')}, label %body, label %end")
    code.label("body")
    args = []
    for place, scalar in enumerate(operands):
        kind = _memory(scalar, width)
        address = code.fresh(f"getelementptr {_memory(scalar, 0)}, ptr %x{place}, i64 {at}")
        loaded = code.fresh(f"load {kind}, ptr {address}, align 1")
        if scalar == "bool":
            loaded = code.fresh(f"icmp ne {kind} {loaded}, {'zeroinitializer' if width else '0'}")
        args.append(Value(loaded, scalar, width))
    made = write(code, args)
    assert made.scalar == result, (made.scalar, result)
    made = code.splat(made, width)
    stored, kind = made.name, _memory(result, width)
    if result == "bool":
        stored = code.fresh(f"zext {made.type} {made.name} to {kind}")
    address = code.fresh(f"getelementptr {_memory(result, 0)}, ptr %y, i64 {at}")
    code.do(f"store {kind} {stored}, ptr {address}, align 1")
    code.do(f"store i64 {code.fresh(f'add i64 {at}, {step}')}, ptr {counter}")
    code.do("br label %head")
    code.label("end")
    head = f"define void @{name}(ptr %x0, ptr %x1, ptr %x2, ptr %y, i64 %count) nounwind {{"
    return "\n".join([head, "entry:", *code.variables, *code.lines, "  ret void", "}"]), code.declared


@cache
def _machine(processor: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    if processor == "host":
        name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        return target.create_target_machine(cpu=name, features=features, opt=2, jit=True)
    return target.create_target_machine(cpu=processor, features="", opt=2, jit=True)


_engines: list[Any] = []  # an engine takes its machine with it, which others share


class Compiled:
    """Functions of one module, by name."""

    def __init__(self, functions: Iterable[tuple[str, set[str]]], processor: str) -> None:
        texts, declared = [], set()
        for text, lines in functions:
            texts.append(text)
            declared |= lines
        machine = _machine(processor)
        module = llvm.parse_assembly("\n".join([*sorted(declared), *texts]))
        module.verify()
        outside = [each.name for each in module.functions if each.is_declaration]
        assert all(each.startswith("llvm.") for each in outside), outside
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(
            module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        )
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        _engines.append(self.engine)

    def __call__(self, name: str, operands: Sequence[Array], result: Any, width: int) -> Array:
        """One function over arrays of one length."""
        count = operands[0].size
        padded = [np.concatenate([each, np.repeat(each[-1:], -count % max(width, 1))]) for each in operands]
        made = np.empty(padded[0].size, result)
        addresses = [each.ctypes.data for each in padded]
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(
            self.engine.get_function_address(name)
        )
        run(*[*addresses, 0, 0][:3], made.ctypes.data, made.size)
        return made[:count]
