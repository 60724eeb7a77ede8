"""Pickles read by a machine that can only build plain values: nothing in a file is imported or called.

In: a pickle, from anywhere, and the few names that it may mention. Out: containers, numbers and texts, and
what those names make of their arguments. The invariant: every step makes at most one small object, there are
at most `STEPS` of them, and what is hashed is plain, so that time and memory follow the size of the file.
"""

from __future__ import annotations

import pickletools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import webgrad as wg

from ..arrays import np
from .memory_map import shown

__all__ = ["PLAIN_NAMES", "Maker", "read_pickle"]

STEPS = 1 << 22
_GROUPS = (tuple, list, dict, set, frozenset, deque)
_PLAIN = (str, bytes, int, float, bool, type(None), wg.DType)
_DAMAGE = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, UnicodeError),
    *(EOFError, RecursionError, ArithmeticError, LookupError),
)


@dataclass(frozen=True, slots=True)
class Maker:
    """What a name in a pickle stands for where it is called: a function of ours that is safe with anything.

    `build` puts a state on what it made; `new` makes one that is not initialised, where that differs.
    """

    make: Callable[..., Any]
    build: Callable[[Any, Any], None] | None = None
    new: Callable[..., Any] | None = None


@dataclass(slots=True)
class _Machine:
    """The stack of a pickle, where its marks are, and what it remembers."""

    names: Mapping[str, Any]
    storage: Callable[[Any], Any]
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    builds: dict[int, tuple[Any, Callable[[Any, Any], None]]] = field(default_factory=dict)
    steps: int = 0

    def count(self, *values: Any) -> None:
        """One step more, and as many as what may be copied has elements."""
        self.steps += 1
        for each in values:
            if isinstance(each, _GROUPS):
                self.steps += len(each)
            elif isinstance(each, str | bytes | bytearray):
                self.steps += len(each) // 16
        if self.steps > STEPS:
            raise wg.ModelFileError(f"it has more than {STEPS:,} steps")

    def since_mark(self) -> list[Any]:
        """What was pushed since the last mark, taken off."""
        at = self.marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def take(self) -> Any:
        """The top, which belongs to what was begun last."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise ValueError("it takes more than there is")
        return self.stack.pop()

    def named(self, name: str) -> None:
        """Push what a name stands for."""
        if name not in self.names:
            raise wg.ModelFileError(
                f"it holds {shown(name.replace(' ', '.'), 120)}, which is neither a tensor nor a plain "
                "value, and objects are not made from files, since that would run code"
            )
        self.stack.append(self.names[name])

    def call(self, arguments: Any, new: bool = False) -> None:
        """Replace a name by what it makes of the arguments."""
        maker = self.take()
        if not isinstance(maker, Maker) or not isinstance(arguments, tuple):
            raise ValueError("it calls what cannot be called")
        self.count(*arguments)
        made = (maker.new if new and maker.new is not None else maker.make)(*arguments)
        if maker.build is not None:
            self.builds[id(made)] = (made, maker.build)  # which keeps it alive: its id stays its own
        self.stack.append(made)

    def build(self) -> None:
        """Put a state on an object."""
        state = self.take()
        made, build = self.builds.get(id(self.stack[-1]), (None, None))
        if build is None:
            raise ValueError(f"it has a state for a {type(self.stack[-1]).__name__}")
        self.count(*(state if isinstance(state, tuple) else (state,)))
        build(made, state)


def read_pickle(
    name: str, file: IO[bytes], names: Mapping[str, Any], storage: Callable[[Any], Any] | None = None
) -> Any:
    """The value of the pickle that a file goes on with. `storage` answers persistent ids."""
    machine = _Machine(names, storage or _no_storage)
    try:
        for opcode, argument, _ in pickletools.genops(file):
            if opcode.name == "STOP":
                return machine.take()
            machine.count()
            act = _ACTS.get(opcode.name)
            if act is None:
                raise ValueError(f"{opcode.name} is nothing that plain values need")
            act(machine, argument)
        raise ValueError("it does not end")
    except wg.ModelFileError as error:
        raise wg.ModelFileError(f"{name}: {error}") from None
    except wg.WebgradError:  # what a tensor in it cannot be here
        raise
    except _DAMAGE as error:
        raise wg.ModelFileError(f"{name} is damaged, or no plain pickle: {shown(str(error), 200)}") from None


def _no_storage(identity: Any) -> Any:
    raise ValueError("it refers to something outside")


# What the opcodes do


def _plain(key: Any) -> Any:
    """A key that takes no time to hash."""
    parts = key if isinstance(key, tuple) and len(key) <= 16 else (key,)
    for each in parts:
        if not isinstance(each, _PLAIN) or (isinstance(each, int) and each.bit_length() > 64):
            raise ValueError(f"a {type(each).__name__} cannot be a key here")
    return key


def _items(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict) or len(items) % 2:
        raise ValueError("it has items of no dict")
    for at in range(0, len(items), 2):
        target[_plain(items[at])] = items[at + 1]


def _append(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, list | deque):
        raise ValueError("it has elements of no list")
    target.extend(items)


def _add(machine: _Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, set):
        raise ValueError("it has elements of no set")
    target.update(map(_plain, items))


def _dict(items: list[Any]) -> dict[Any, Any]:
    return {_plain(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


def _some(count: int) -> Callable[[_Machine, Any], None]:
    def act(machine: _Machine, _: Any) -> None:
        found = [machine.take() for _ in range(count)]
        machine.stack.append(tuple(reversed(found)))

    return act


def _two(put: Callable[[_Machine, list[Any]], None], count: int) -> Callable[[_Machine, Any], None]:
    def act(machine: _Machine, _: Any) -> None:
        put(machine, [machine.take() for _ in range(count)][::-1])

    return act


def _global_of_stack(machine: _Machine, _: Any) -> None:
    name, module = machine.take(), machine.take()
    machine.named(f"{module} {name}")


def _remember(machine: _Machine, number: Any) -> None:
    machine.memo[len(machine.memo) if number is None else number] = machine.stack[-1]


def _pop(machine: _Machine, _: Any) -> None:
    if len(machine.stack) > (machine.marks[-1] if machine.marks else 0):
        machine.stack.pop()
    else:
        machine.marks.pop()


def _push(machine: _Machine, value: Any) -> None:
    machine.stack.append(value)


def _made(make: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(make())


def _gathered(make: Callable[[list[Any]], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(make(machine.since_mark()))


_VALUES = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE "
    "BINUNICODE8 STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8"
)
_ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(_VALUES.split(), _push),
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "NONE": _made(lambda: None),
    "NEWTRUE": _made(lambda: True),
    "NEWFALSE": _made(lambda: False),
    "EMPTY_DICT": _made(dict),
    "EMPTY_LIST": _made(list),
    "EMPTY_TUPLE": _made(tuple),
    "EMPTY_SET": _made(set),
    "DICT": _gathered(_dict),
    "LIST": _gathered(list),
    "TUPLE": _gathered(tuple),
    "FROZENSET": _gathered(lambda items: frozenset(map(_plain, items))),
    "TUPLE1": _some(1),
    "TUPLE2": _some(2),
    "TUPLE3": _some(3),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": _pop,
    "POP_MARK": lambda machine, _: machine.since_mark().clear(),
    "DUP": lambda machine, _: machine.stack.append(machine.stack[-1]),
    "PUT": _remember,
    "BINPUT": _remember,
    "LONG_BINPUT": _remember,
    "MEMOIZE": _remember,
    "GET": lambda machine, number: machine.stack.append(machine.memo[number]),
    "BINGET": lambda machine, number: machine.stack.append(machine.memo[number]),
    "LONG_BINGET": lambda machine, number: machine.stack.append(machine.memo[number]),
    "APPEND": _two(_append, 1),
    "APPENDS": lambda machine, _: _append(machine, machine.since_mark()),
    "SETITEM": _two(_items, 2),
    "SETITEMS": lambda machine, _: _items(machine, machine.since_mark()),
    "ADDITEMS": lambda machine, _: _add(machine, machine.since_mark()),
    "GLOBAL": lambda machine, name: machine.named(name),
    "STACK_GLOBAL": _global_of_stack,
    "BINPERSID": lambda machine, _: machine.stack.append(machine.storage(machine.take())),
    "REDUCE": lambda machine, _: machine.call(machine.take()),
    "NEWOBJ": lambda machine, _: machine.call(machine.take(), new=True),
    "BUILD": lambda machine, _: machine.build(),
}


# Names of Python's and NumPy's plain values


def _pairs(items: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values, of a dict or of pairs."""
    for key, value in items.items() if isinstance(items, dict) else _elements(items):
        yield _plain(key), value


def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict(_pairs(items))


def _with_metadata(made: Any, state: Any) -> None:
    """What torch puts on a state dict: the versions of its modules."""
    if "_metadata" in state:
        made._metadata = state["_metadata"]


def _namespace() -> Any:
    from argparse import Namespace  # here: few files have one

    return Namespace()


def _attributes(made: Any, state: Any) -> None:
    for name, value in state.items():
        if not isinstance(name, str) or name.startswith("__"):
            raise ValueError("it has attributes without a name")
        setattr(made, name, value)


def _defaults(factory: Any = None) -> defaultdict[Any, Any]:
    if factory is None:
        return defaultdict(None)
    name = next(name for name, maker in _BUILTINS.items() if maker is factory)
    return defaultdict({"list": list, "dict": dict, "set": set, "int": int, "float": float}[name])


def _elements(items: Any) -> Any:
    """What may be gone through: its elements were counted."""
    if not isinstance(items, _GROUPS):
        raise ValueError(f"it takes a {type(items).__name__} for elements")
    return items


def _bytes(data: Any = b"", *encoding: Any) -> bytearray:
    raw = _encoded(data, *encoding) if encoding else data
    if not isinstance(raw, bytes | bytearray):
        raise ValueError(f"it takes a {type(raw).__name__} for bytes")
    return bytearray(raw)


def _encoded(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"it has bytes in {encoding}")
    return text.encode("latin-1")


def _number(kind: type) -> Maker:
    def make(*value: Any) -> Any:
        if any(isinstance(each, str | bytes) for each in value):
            raise ValueError("a text is no number")
        return kind(*value)

    return Maker(make)


def _numpy_dtype(code: Any, *_: Any) -> Any:
    dtype: Any = np.dtype(code) if isinstance(code, str) else None
    if dtype is None or dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype.shape:
        raise ValueError(f"it has an array of {code!r}")
    return dtype


def _byte_order(dtype: Any, state: Any) -> None:
    if state[1] not in ("<", "|", "="):
        raise ValueError("it has numbers whose highest byte comes first")


def _numpy_scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, np.dtype) or len(data) != dtype.itemsize:
        raise ValueError("it has a number of another size than it says")
    return np.frombuffer(data, dtype)[0]


def _numpy_state(array: Any, state: Any) -> None:
    _, shape, dtype, fortran, data = state
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) and 0 <= size <= 1 << 48 else -1
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes) or count * dtype.itemsize != len(data):
        raise ValueError("it has an array of another size than it says")
    array.__setstate__((1, tuple(shape), dtype, bool(fortran), data))


def _numpy_names() -> dict[str, Any]:
    array = Maker(lambda kind, shape, code: np.zeros(0, np.uint8), _numpy_state)
    found: dict[str, Any] = {
        "numpy dtype": Maker(_numpy_dtype, _byte_order),
        "numpy ndarray": "numpy.ndarray",
    }
    for core in ("numpy.core.multiarray", "numpy._core.multiarray"):
        found |= {f"{core} _reconstruct": array, f"{core} scalar": Maker(_numpy_scalar)}
    return found


_BUILTINS: dict[str, Maker] = {
    "set": Maker(lambda items=(): set(map(_plain, _elements(items)))),
    "frozenset": Maker(lambda items=(): frozenset(map(_plain, _elements(items)))),
    "list": Maker(lambda items=(): list(_elements(items))),
    "tuple": Maker(lambda items=(): tuple(_elements(items))),
    "dict": Maker(lambda items=(): dict(_pairs(items))),
    "int": _number(int),
    "float": _number(float),
    "complex": _number(complex),
    "bool": _number(bool),
    "range": _number(range),
    "slice": Maker(slice),
    "bytearray": Maker(_bytes),
}
PLAIN_NAMES: dict[str, Any] = {
    "collections OrderedDict": Maker(_ordered, _with_metadata),
    "collections defaultdict": Maker(_defaults),
    "collections Counter": Maker(lambda counts=(): Counter(dict(_pairs(counts)))),
    "collections deque": Maker(lambda items=(), most=None: deque(_elements(items), most)),
    "argparse Namespace": Maker(_namespace, _attributes),
    "_codecs encode": Maker(_encoded),
    **{f"{home} {name}": maker for home in ("builtins", "__builtin__") for name, maker in _BUILTINS.items()},
    "__builtin__ xrange": _BUILTINS["range"],  # as Python 2 has it
    **_numpy_names(),
}
