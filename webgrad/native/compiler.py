"""From LLVM's text to functions: llvmlite compiles it for a processor; what was compiled is kept on disk.

In: the text of a module, and names of its functions. Out: their addresses, in this process, for good. Where
llvmlite is not installed, or native code is switched off, there is none, and NumPy computes. A module that
LLVM does not accept, or that calls anything from outside, is refused before it is compiled: LLVM would end
the process. LLVM's objects are used by one thread at a time, the holder of `lock`.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..config import settings
from ..errors import WebgradError
from ..observing import observers, stage
from ..runtime.shield import shield
from .objects import Objects, key_of, objects_folder
from .processor import ARCHITECTURES, Processor, architecture, chosen, setting_up
from .text import RELAX

__all__ = [
    "Functions",
    "assembly",
    "callable_at",
    "compiled",
    "converts_halves",
    "functions",
    "is_available",
    "load",
    "objects",
]

Functions = tuple[Callable[[int], int], Callable[[int], int]]
OLDEST = (0, 45)  # of llvmlite: before, LLVM wrote its text in another way
# Few: the text says what is a vector and what is unrolled. All of LLVM's take eight times as long, and make
# code that is no quicker.
_PASSES = (
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "loop_rotate",
    "instruction_combine",
    "simplify_cfg",
)
lock = threading.RLock()
_objects_of_llvm: list[Any] = []  # that are there for good


def _leave() -> None:
    """When the program ends, llvmlite is gone before its objects are, and cannot dispose of them."""
    for each in _objects_of_llvm:
        each.detach()


atexit.register(_leave)


def is_available() -> bool:
    """Whether there is native code here: on the processors that it was written for, with llvmlite."""
    return settings().native and _installed()


@cache
def _installed() -> bool:
    if architecture() not in ARCHITECTURES:
        return False
    try:
        import llvmlite

        numbers = llvmlite.__version__.split(".")
        return (int(numbers[0]), int(numbers[1])) >= OLDEST
    except (ImportError, ValueError, IndexError):
        return False


# From text to object code


def text_for(text: str, processor: Processor) -> str:
    """A module's text as a kind of processor has it."""
    if RELAX in text:
        name, argument = ARCHITECTURES[processor.architecture]
        text = text.replace(RELAX, f"call void @{name}({argument})")
        text = f"declare void @{name}({argument.split(' ')[0]})\n{text}"
    if not processor.has_fma:  # a call of the C library's fma would be a hundred times as slow
        lines = text.replace("@llvm.fma.", "@llvm.fmuladd.").split("\n")
        declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
        text = "\n".join([*declared, *(line for line in lines if line not in declared)])
    return text


class _Compiler:
    """LLVM, set up for a processor, which need not be the one at hand."""

    def __init__(self, processor: Processor) -> None:
        import llvmlite.binding as llvm

        if processor.architecture == architecture():
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
        else:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        self.llvm = llvm
        self.processor = processor
        self.machine = llvm.Target.from_triple(processor.triple).create_target_machine(
            cpu=processor.cpu, features=processor.features, opt=2, jit=True
        )
        self.passes = llvm.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(self.passes, f"add_{name}_pass")()
        self.options = llvm.create_pipeline_tuning_options(speed_level=2)
        _objects_of_llvm.extend((self.passes, self.options))
        version = ".".join(map(str, llvm.llvm_version_info))
        self.key = f"LLVM {version} O2 {' '.join(_PASSES)}; {processor}"  # of all that decides on the code

    def checked(self, text: str, names: Sequence[str]) -> Any:
        """The module of a text, unless LLVM would not survive it; then with its passes run."""
        try:
            module = self.llvm.parse_assembly(text_for(text, self.processor))
            module.verify()
        except RuntimeError as error:
            raise WebgradError(f"native code for the cpu that LLVM refuses: {error}") from error
        inside = {each.name for each in module.functions if not each.is_declaration}
        for name in names:
            if name not in inside:
                raise WebgradError(f"native code for the cpu that has no function {name}")
        parts = (*module.functions, *module.global_variables)
        outside = [each.name for each in parts if each.is_declaration]
        if any(not each.startswith("llvm.") for each in outside):
            raise WebgradError(f"native code for the cpu that calls {outside}")
        self.passes.run(module, self.llvm.create_pass_builder(self.machine, self.options))
        return module

    def image(self, text: str, names: Sequence[str]) -> bytes:
        """A module as an object file."""
        return bytes(self.machine.emit_object(self.checked(text, names)))


@cache
def _compiler(processor: Processor) -> _Compiler:
    with setting_up():
        return _Compiler(processor)


def assembly(text: str, processor: Processor | None = None) -> str:
    """What a module is in the processor's own words: of any processor, and nothing of it is run."""
    with lock:
        made = _compiler(processor or chosen())
        return str(made.machine.emit_assembly(made.checked(text, ())))


# From object code to functions


class _Linker:
    """Where code is loaded, for good: each module is a library, which takes 45 KiB and its code."""

    def __init__(self, made: _Compiler) -> None:
        self.llvm = made.llvm
        self.jit = made.llvm.create_lljit_compiler(made.machine, suppress_errors=True)
        _objects_of_llvm.append(self.jit)
        self.numbers = itertools.count()  # a library that could not be linked has used up its name, too

    def addresses(self, image: bytes, names: Sequence[str]) -> dict[str, int]:
        """Those of an object file's functions; RuntimeError where it is not one, or something is missing."""
        builder = self.llvm.JITLibraryBuilder().add_object_img(image)
        for name in names:
            builder.export_symbol(name)
        library = builder.link(self.jit, f"webgrad{next(self.numbers)}")
        _objects_of_llvm.append(library)
        return {name: int(library[name]) for name in names}


@cache
def _linker(processor: Processor) -> _Linker:
    made = _compiler(processor)
    with setting_up():
        return _Linker(made)


_loaded: dict[str, dict[str, int]] = {}
_objects = cache(Objects)


def objects() -> Objects:
    """What is kept on disk, as the settings say."""
    return _objects(objects_folder(), settings().native_cache)


def functions(text: str, names: Sequence[str], label: str = "") -> dict[str, int]:
    """The addresses of functions of a module, which stay for good; the label is for those who watch."""
    with stage("compile"):
        return load(text, names, label)


def load(text: str, names: Sequence[str], label: str = "") -> dict[str, int]:
    """The same, where nobody waits for it."""
    with lock:
        processor = chosen()
        key = key_of(_compiler(processor).key, *names, text)
        found = _loaded.get(key)
        if found is None:
            with shield:  # an error of a signal's handler is not LLVM's
                found = _loaded[key] = _found_or_compiled(text, names, processor, key)
            for each in observers():
                each.compiled(label or names[0], text)
    return found


def _found_or_compiled(text: str, names: Sequence[str], processor: Processor, key: str) -> dict[str, int]:
    image = objects().find(key)
    if image is not None:
        try:
            return _linker(processor).addresses(image, names)
        except RuntimeError:  # not what was written, though it seems to be
            objects().drop(key)
    image = _compiler(processor).image(text, names)
    try:
        found = _linker(processor).addresses(image, names)
    except RuntimeError as error:
        raise WebgradError(f"native code for the cpu that cannot be linked: {error}") from error
    objects().keep(key, image)
    return found


def converts_halves() -> bool:
    """Whether the processor makes float32 of float16: else LLVM would call a library for every number."""
    return chosen().has_halves


_KEEPING, _LENDING = (kind(ctypes.c_int64, ctypes.c_void_p) for kind in (ctypes.PYFUNCTYPE, ctypes.CFUNCTYPE))


def callable_at(address: int) -> Functions:
    """A function that takes an address and gives an i64: in a form that keeps the interpreter to itself, and
    one that lends it.
    """
    return _KEEPING(address), _LENDING(address)


@cache
def compiled(write: Callable[..., str], *arguments: Any) -> Functions:
    """The function `run` of the module that `write` writes."""
    label = "_".join([getattr(write, "__name__", "run"), *map(str, arguments)])
    return callable_at(functions(write(*arguments), ["run"], label)["run"])


# A child must not find LLVM in the middle of something that a thread of its parent was doing.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
