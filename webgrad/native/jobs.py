"""Sharing work between threads in native code: one slot, into which one thread puts work and others help.

In: a slot's address, or 0. Out: LLVM's text of `share`, which computes units of work together with whoever
watches the slot, and of what helpers run. Work is claimed in pieces by a counter. A helper enters by counting
itself in and looking whether the slot is open; `share` closes the slot and waits until nobody is inside. The
invariant: when `share` returns, no helper touches what it was given. Helpers that see no work for a while
first sleep, then return, so that nothing spins when nothing runs.
"""

from __future__ import annotations

from .text import RELAX, Function

__all__ = ["FIRST_FIELD", "SLOT_BYTES", "SYSTEM", "share_text", "watch_module"]

SLOT, FIRST_FIELD = 0, 1  # of the i64 that a function finds its arguments in: the slot or 0, then its own
PIECE = 1 << 14  # multiplications of a piece, at least: 1 µs, about
LEAST = 4 * PIECE  # multiplications from which work is shared
PATIENT = 1 << 10  # pauses after which a waiting thread lets others run
# What lies in a slot. The first three are counted up and down by several threads, each on a cache line of its
# own; the work is written by one while the slot is closed.
LINE = 64
OPEN, INSIDE, NEXT, WORK, SYSTEM = 0, LINE, 2 * LINE, 3 * LINE, 4 * LINE
SLOT_BYTES = 5 * LINE
# What a slot is told when it is made: the addresses of a function of the system that lets other threads run
# and of one that sleeps, what that is told, and how many pieces work is cut into, if they are not too small.
YIELD, SLEEP, NAP, PARTS = range(SYSTEM, SYSTEM + 32, 8)
_WORK = (("ptr", "work"), ("ptr", "fields"), ("i64", "units"), ("i64", "piece"))


def _claim(f: Function, slot: str, work: str, fields: str, units: str, piece: str) -> None:
    """Pieces of work until none is left."""
    f.do("br label %claim")
    f.block("claim")
    first = f(f"atomicrmw add ptr {f.at(slot, NEXT)}, i64 {piece} monotonic, align 8")
    f.do(f"br i1 {f(f'icmp slt i64 {first}, {units}')}, label %claimed, label %exhausted")
    f.block("claimed")
    last = f(f"call i64 @llvm.smin.i64(i64 {f.add(first, piece)}, i64 {units})")
    f.do(f"call void {work}(ptr {fields}, i64 {first}, i64 {last})")
    f.do("br label %claim")
    f.block("exhausted")


def _is_open(f: Function, slot: str) -> str:
    state = f(f"load atomic i64, ptr {f.at(slot, OPEN)} seq_cst, align 8")
    return f(f"icmp ne i64 {state}, 0")


def _set_open(f: Function, slot: str, value: int) -> None:
    f.do(f"store atomic i64 {value}, ptr {f.at(slot, OPEN)} seq_cst, align 8")


def _wait_until_empty(f: Function, slot: str) -> None:
    """A helper that the system has put aside is waited for with patience."""
    spins = f.variable("i64", "0")
    f.do("br label %wait")
    f.block("wait")
    inside = f(f"load atomic i64, ptr {f.at(slot, INSIDE)} seq_cst, align 8")
    f.do(f"br i1 {f(f'icmp eq i64 {inside}, 0')}, label %empty, label %occupied")
    f.block("occupied")
    count = f.add(f.load("i64", spins, align=8), 1)
    f.do(f"store i64 {count}, ptr {spins}")
    f.do(RELAX)
    give_way = f.load("ptr", slot, YIELD, align=8)
    known = f(f"icmp ne ptr {give_way}, null")
    with f.when(f(f"and i1 {known}, {f(f'icmp sgt i64 {count}, {PATIENT}')}")):
        f(f"call i32 {give_way}()")
    f.do("br label %wait")
    f.block("empty")


def share_text(*, ranged: bool = False) -> str:
    """`share(fields, work, units, cost)`: all units, each of so many multiplications.

    Where it is `ranged`, its last parameter says which unit is the first.
    """
    parameters = [("ptr", "fields"), ("ptr", "work"), ("i64", "units"), ("i64", "cost")]
    f = Function("share", [*parameters, ("i64", "first")] if ranged else parameters)
    first = "%first" if ranged else "0"
    slot = f.field("ptr", SLOT)
    nobody = f(f"icmp eq ptr {slot}, null")
    count = f(f"sub i64 %units, {first}") if ranged else "%units"
    few = f(f"icmp slt i64 {f.multiply(count, '%cost')}, {LEAST}")
    f.do(f"br i1 {f(f'or i1 {nobody}, {few}')}, label %alone, label %together")
    f.block("alone")
    f.do(f"call void %work(ptr %fields, i64 {first}, i64 %units)")
    f.do("ret void")
    f.block("together")
    cost = f("call i64 @llvm.smax.i64(i64 %cost, i64 1)")
    parts = f.load("i64", slot, PARTS, align=8)
    least, part = f(f"sdiv i64 {PIECE}, {cost}"), f(f"sdiv i64 {count}, {parts}")
    piece = f.add(f(f"call i64 @llvm.smax.i64(i64 {least}, i64 {part})"), 1)
    values = ("%work", "%fields", "%units", piece)
    for at, ((kind, _), value) in enumerate(zip(_WORK, values, strict=True)):
        f.store(kind, value, slot, WORK + 8 * at)
    f.do(f"store atomic i64 {first}, ptr {f.at(slot, NEXT)} seq_cst, align 8")
    _set_open(f, slot, 1)
    _claim(f, slot, *values)
    _set_open(f, slot, 0)
    _wait_until_empty(f, slot)
    return f.text()


def watch_module() -> str:
    """Help with what is put into a slot; without work look again after each pause, for so many pauses, then
    after each nap, for so many naps.
    """
    f = Function("run", [("ptr", "fields")], "i64")
    slot, spins, naps = f.field("ptr", SLOT), f.field("i64", FIRST_FIELD), f.field("i64", FIRST_FIELD + 1)
    sleep, nap = f.load("ptr", slot, SLEEP, align=8), f.load("i32", slot, NAP, align=4)
    idle = f.variable("i64", "0")
    f.do("br label %look")
    f.block("look")
    f.do(f"br i1 {_is_open(f, slot)}, label %enter, label %nothing")
    f.block("nothing")
    f.do(RELAX)
    count = f.add(f.load("i64", idle, align=8), 1)
    f.do(f"store i64 {count}, ptr {idle}")
    f.do(f"br i1 {f(f'icmp slt i64 {count}, {spins}')}, label %look, label %tired")
    f.block("tired")
    last = f.add(spins, naps)
    f.do(f"br i1 {f(f'icmp slt i64 {count}, {last}')}, label %asleep, label %leave")
    f.block("asleep")
    f(f"call i32 {sleep}(i32 {nap})")
    f.do("br label %look")
    f.block("enter")
    f(f"atomicrmw add ptr {f.at(slot, INSIDE)}, i64 1 seq_cst, align 8")
    with f.when(_is_open(f, slot)):  # else it was closed meanwhile, and what lies in it may change
        values = [f.load(kind, slot, WORK + 8 * at, align=8) for at, (kind, _) in enumerate(_WORK)]
        _claim(f, slot, *values)
        f.do(f"store i64 0, ptr {idle}")
    f(f"atomicrmw sub ptr {f.at(slot, INSIDE)}, i64 1 seq_cst, align 8")
    f.do(RELAX)
    f.do("br label %look")
    f.block("leave")
    return f.module()
