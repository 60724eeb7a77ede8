"""Sharing work between threads in native code: one slot, into which one thread puts work and others help.

In: a slot's address, or 0. Out: LLVM's text of `share`, which computes units of work together with whoever
watches the slot, and of what helpers run. Work is claimed in pieces by a counter. A helper enters by counting
itself in and looking whether the slot is open; `share` closes the slot and waits until nobody is inside. The
invariant: when `share` returns, no helper touches what it was given. Helpers that see no work for a while
first sleep, then return, so that nothing spins when nothing runs. A helper that was waited for longer than
its help was worth has lost its core to others: for some time, longer each time, work is done without it.
"""

from __future__ import annotations

from .text import RELAX, Function

__all__ = ["FIRST_FIELD", "SLOT_BYTES", "SYSTEM", "kernel_function", "share_text", "watch_module"]

SLOT, FIRST_FIELD = 0, 1  # of the i64 that a function finds its arguments in: the slot or 0, then its own
_KERNEL = (("ptr", "fields"), ("i64", "begin"), ("i64", "end"))
PIECE = 1 << 14  # multiplications of a piece, at least: 1 µs, about
LEAST = 4 * PIECE  # multiplications from which work is shared
PATIENT = 1 << 10  # pauses after which a waiting thread lets others run
EVERY = 64  # pauses after which a helper without work lets others run, and looks at the clock
GAP = 500_000  # nanoseconds between two such looks that say that others had the core
LATE = 50_000  # nanoseconds, beside the time that the rest of the work took, after which a helper is late
SHORTEST_REST, LONGEST_REST = 2_000_000, 60_000_000  # nanoseconds without helpers
SHARE = 8  # the part of the time from which it is much that is lost by waiting for a core: an eighth
# What lies in a slot. The first three are counted up and down by several threads, each on a cache line of its
# own; the work is written by one while the slot is closed.
LINE = 64
OPEN, INSIDE, NEXT, WORK, SYSTEM = 0, LINE, 2 * LINE, 3 * LINE, 4 * LINE
SLOT_BYTES = 6 * LINE
# Until when there is no help, and for how long that was decided; the thread that has the slot writes it.
REST, LENGTH = 5 * LINE, 5 * LINE + 8
# What a slot is told when it is made: the addresses of a function of the system that lets other threads run
# and of one that sleeps, what that is told, the address of POSIX's clock_gettime, or 0, and which clock; and
# how many pieces work is cut into, if they are not too small.
YIELD, SLEEP, NAP, CLOCK, CLOCK_NUMBER, PARTS = range(SYSTEM, SYSTEM + 48, 8)
_WORK = (("ptr", "work"), ("ptr", "fields"), ("i64", "units"), ("i64", "piece"))
UNITS = WORK + 16


def kernel_function() -> Function:
    """`kernel`, which does units of work, while it is written."""
    return Function("kernel", _KERNEL)


def _claim(f: Function, slot: str, work: str, fields: str, units: str, piece: str) -> None:
    """Pieces of work until none is left."""
    f.go("claim")
    f.block("claim")
    first = f(f"atomicrmw add ptr {f.at(slot, NEXT)}, i64 {piece} monotonic, align 8")
    f.branch(f(f"icmp slt i64 {first}, {units}"), "claimed", "exhausted")
    f.block("claimed")
    last = f.least(f.add(first, piece), units)
    f.do(f"call void {work}(ptr {fields}, i64 {first}, i64 {last})")
    f.go("claim")
    f.block("exhausted")


def _is_open(f: Function, slot: str) -> str:
    state = f(f"load atomic i64, ptr {f.at(slot, OPEN)} seq_cst, align 8")
    return f(f"icmp ne i64 {state}, 0")


def _has_work(f: Function, slot: str) -> str:
    """Whether something is left to be claimed, as it seems from outside."""
    claimed, units = (
        f(f"load atomic i64, ptr {f.at(slot, each)} monotonic, align 8") for each in (NEXT, UNITS)
    )
    is_left = f(f"icmp slt i64 {claimed}, {units}")
    return f(f"and i1 {_is_open(f, slot)}, {is_left}")


def _set_open(f: Function, slot: str, value: int) -> None:
    f.do(f"store atomic i64 {value}, ptr {f.at(slot, OPEN)} seq_cst, align 8")


def _is_occupied(f: Function, slot: str) -> str:
    inside = f(f"load atomic i64, ptr {f.at(slot, INSIDE)} seq_cst, align 8")
    return f(f"icmp ne i64 {inside}, 0")


def _now_text() -> str:
    """`now(slot)`: nanoseconds, or 0 where there is no clock."""
    f = Function("now", [("ptr", "slot")], "i64")
    time = f.variable("i64", count=2)
    seconds, more = time, f.at(time, 1, "i64")
    for each in (seconds, more):
        f.do(f"store i64 0, ptr {each}")
    clock, number = f.load("ptr", "%slot", CLOCK, align=8), f.load("i32", "%slot", CLOCK_NUMBER, align=8)
    with f.when(f(f"icmp ne ptr {clock}, null")):
        f(f"call i32 {clock}(i32 {number}, ptr {time})")
    total = f.add(f.multiply(f.load("i64", seconds, align=8), 1_000_000_000), f.load("i64", more, align=8))
    return f.text(f"ret i64 {total}")


def _wait_text() -> str:
    """`wait(slot, start)`: until nobody is inside, with patience, since the system may have put a helper
    aside. If that takes long beside what came since `start`, helpers rest.
    """
    f = Function("wait", [("ptr", "slot"), ("i64", "start")])
    slot = "%slot"
    f.branch(_is_occupied(f, slot), "begin", "done")
    f.block("done")
    f.do("ret void")
    f.block("begin")
    began = f("call i64 @now(ptr %slot)")
    _wait_until_empty(f, slot)
    ended = f("call i64 @now(ptr %slot)")
    patience = f.add(f(f"sub i64 {began}, %start"), LATE)
    lost = f(f"sub i64 {ended}, {began}")
    with f.when(f(f"icmp sgt i64 {lost}, {patience}")):
        before, length = (f.load("i64", slot, each, align=8) for each in (REST, LENGTH))
        length = _longer_rest(f, ended, lost, before, length)
        f.store("i64", f.add(ended, length), slot, REST)
        f.store("i64", length, slot, LENGTH)
    return f.text()


def _longer_rest(f: Function, now: str, lost: str, ended: str, length: str) -> str:
    """How long to rest, by the time that was lost, by when the last rest ended, and how long that was: twice
    as long if much of the time since then was lost.
    """
    much = f(f"icmp sgt i64 {f.multiply(lost, SHARE)}, {f(f'sub i64 {now}, {ended}')}")
    doubled = f(f"select i1 {much}, i64 {f.multiply(length, 2)}, i64 0")
    least = f.most(doubled, SHORTEST_REST)
    return f.least(least, LONGEST_REST)


def _wait_until_empty(f: Function, slot: str) -> None:
    spins = f.variable("i64", "0")
    f.go("wait")
    f.block("wait")
    f.branch(_is_occupied(f, slot), "occupied", "empty")
    f.block("occupied")
    count = f.add(f.load("i64", spins, align=8), 1)
    f.do(f"store i64 {count}, ptr {spins}")
    f.do(RELAX)
    _let_others_run(f, slot, f(f"icmp sgt i64 {count}, {PATIENT}"))
    f.go("wait")
    f.block("empty")


def _let_others_run(f: Function, slot: str, condition: str) -> None:
    """Where the system has a function for that."""
    give_way = f.load("ptr", slot, YIELD, align=8)
    known = f(f"icmp ne ptr {give_way}, null")
    with f.when(f(f"and i1 {known}, {condition}")):
        f(f"call i32 {give_way}()")


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
    f.branch(f(f"or i1 {nobody}, {few}"), "alone", "together")
    f.block("alone")
    f.do(f"call void %work(ptr %fields, i64 {first}, i64 %units)")
    f.do("ret void")
    f.block("together")
    start = f(f"call i64 @now(ptr {slot})")
    resting = f(f"icmp slt i64 {start}, {f.load('i64', slot, REST, align=8)}")
    f.branch(resting, "alone", "shared")
    f.block("shared")
    cost = f.most("%cost", 1)
    parts = f.load("i64", slot, PARTS, align=8)
    least = f(f"sdiv i64 {PIECE}, {cost}")
    part = f(f"sdiv i64 {f.add(count, -1)}, {parts}")
    piece = f.add(f.most(least, part), 1)
    values = ("%work", "%fields", "%units", piece)
    for at, ((kind, _), value) in enumerate(zip(_WORK, values, strict=True)):
        f.store(kind, value, slot, WORK + 8 * at)
    f.do(f"store atomic i64 {first}, ptr {f.at(slot, NEXT)} seq_cst, align 8")
    _set_open(f, slot, 1)
    _claim(f, slot, *values)
    _set_open(f, slot, 0)
    f.do(f"call void @wait(ptr {slot}, i64 {start})")
    return "\n".join([_now_text(), _wait_text(), f.text()])


def watch_module() -> str:
    """Help with what is put into a slot; without work look again after each pause, for so many pauses, then
    after each nap, for so many naps. Where others get the core between two pauses, rest: what a helper
    spends there on looking, the thread that it would help may be waiting for.
    """
    f = Function("run", [("ptr", "fields")], "i64")
    slot, spins, naps = f.field("ptr", SLOT), f.field("i64", FIRST_FIELD), f.field("i64", FIRST_FIELD + 1)
    sleep, nap = f.load("ptr", slot, SLEEP, align=8), f.load("i32", slot, NAP, align=4)
    idle, seen = (
        f.variable("i64", "0"),
        f.variable("i64", "0"),
    )  # when it had the core for certain; 0: unknown
    rested, length = f.variable("i64", "0"), f.variable("i64", "0")
    f.go("look")
    f.block("look")
    f.branch(_has_work(f, slot), "enter", "nothing")
    f.block("nothing")
    f.do(RELAX)
    count = f.add(f.load("i64", idle, align=8), 1)
    f.do(f"store i64 {count}, ptr {idle}")
    f.branch(f(f"icmp slt i64 {count}, {spins}"), "awake", "tired")
    f.block("awake")
    is_time = f(f"icmp eq i64 {f(f'and i64 {count}, {EVERY - 1}')}, 0")
    f.branch(is_time, "ask", "look")
    f.block("ask")
    _let_others_run(f, slot, "1")
    now, before = f(f"call i64 @now(ptr {slot})"), f.load("i64", seen, align=8)
    f.do(f"store i64 {now}, ptr {seen}")
    lost = f(f"sub i64 {now}, {before}")
    gap = f(f"icmp sgt i64 {lost}, {GAP}")
    known = f(f"icmp ne i64 {before}, 0")
    f.branch(f(f"and i1 {gap}, {known}"), "rest", "look")
    f.block("rest")
    ended, before = (f.load("i64", each, align=8) for each in (rested, length))
    longer = _longer_rest(f, now, lost, ended, before)
    f.do(f"store i64 {longer}, ptr {length}")
    microseconds = f(f"sdiv i64 {longer}, 1000")
    f(f"call i32 {sleep}(i32 {f(f'trunc i64 {microseconds} to i32')})")
    ended = f(f"call i64 @now(ptr {slot})")
    for each in (rested, seen):
        f.do(f"store i64 {ended}, ptr {each}")
    f.go("look")
    f.block("tired")
    last = f.add(spins, naps)
    f.branch(f(f"icmp slt i64 {count}, {last}"), "asleep", "leave")
    f.block("asleep")
    f(f"call i32 {sleep}(i32 {nap})")
    f.do(f"store i64 0, ptr {seen}")
    f.go("look")
    f.block("enter")
    f(f"atomicrmw add ptr {f.at(slot, INSIDE)}, i64 1 seq_cst, align 8")
    with f.when(_is_open(f, slot)):  # else it was closed meanwhile, and what lies in it may change
        values = [f.load(kind, slot, WORK + 8 * at, align=8) for at, (kind, _) in enumerate(_WORK)]
        _claim(f, slot, *values)
        for each in (idle, seen):
            f.do(f"store i64 0, ptr {each}")
    f(f"atomicrmw sub ptr {f.at(slot, INSIDE)}, i64 1 seq_cst, align 8")
    f.do(RELAX)
    f.go("look")
    f.block("leave")
    return f.module(_now_text())
