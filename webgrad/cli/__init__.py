"""The `webgrad` command: `webgrad chat`, `webgrad info`, …, `webgrad --version`.

In: the command line. Out: an exit code: 0, 2 for what the user can mend, 130 for Ctrl-C, 143 for SIGTERM.
Each command is a module with `main(arguments) -> int`, imported only when it is asked for, so that `--help`
and `--version` are quick and touch no GPU.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from .. import __version__
from ..errors import WebgradError
from ..startup import INTERRUPTED, heed_interrupts
from .options import Parser, one_line

__all__ = ["main"]

# command → (module, what it does); arguments after the command go to the module as they are
COMMANDS: Mapping[str, tuple[str, str]] = {
    "chat": ("webgrad.cli.chat", "talk with a language model"),
    "generate": ("webgrad.cli.generate", "let a language model go on with a text"),
    "embed": ("webgrad.cli.embed", "turn texts into vectors that are near where meanings are"),
    "imagine": ("webgrad.cli.imagine", "make pictures with a diffusion model"),
    "run": ("webgrad.cli.run", "run an ONNX model on files"),
    "bench": ("webgrad.cli.bench", "measure how quickly a model reads and writes here"),
    "pull": ("webgrad.cli.pull", "bring a model to this machine"),
    "models": ("webgrad.cli.models", "list, show or remove the models on this machine"),
    "profile": ("webgrad.cli.profile", "show where a script's time and memory go"),
    "check": ("webgrad.cli.check", "hold a script or a model on the GPU against the cpu, op by op"),
    "record": ("webgrad.cli.record", "run a script and keep every distinct dispatch in a file"),
    "replay": ("webgrad.cli.replay", "run a recording again: verify its results and time its kernels"),
    "kernels": ("webgrad.cli.kernels", "list the kernels that a run compiles, and show needless ones"),
    "export": ("webgrad.cli.export", "write a page that runs a model in browsers"),
    "serve-static": ("webgrad.cli.serve_static", "serve a folder to this machine's browsers"),
    "info": ("webgrad.cli.info", "show the devices, their features, and the active settings"),
    "doctor": ("webgrad.cli.doctor", "probe a device, and say what is wrong with it and what to do"),
    "demo": ("webgrad.cli.demo", "run a small computation on the GPU and say how it went"),
    "tune": ("webgrad.cli.tune", "list or clear the kernel choices that were measured and kept"),
    "native": ("webgrad.cli.native", "show or clear the native code that was compiled and kept"),
}
# how --help lists them
GROUPS: Mapping[str, tuple[str, ...]] = {
    "models": ("chat", "generate", "embed", "imagine", "run", "bench"),
    "files of models": ("pull", "models"),
    "scripts": ("profile", "check", "record", "replay", "kernels"),
    "browsers": ("export", "serve-static"),
    "this machine": ("info", "doctor", "demo", "tune", "native"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what webgrad refuses on purpose becomes one line on stderr and exit code 2."""
    _open_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    name = f"webgrad {words[0]}" if words and words[0] in COMMANDS else "webgrad"
    try:
        with _ended_by_sigterm():
            code = _run(words)
            _flush()
    except SystemExit:  # of argparse, which has printed why, or of SIGTERM
        try:
            _flush()
        except OSError as error:
            return _failed(name, error)
        raise
    except WebgradError as error:
        told = one_line(error).removeprefix(f"{name.removeprefix('webgrad ')}: ")
        return _tell(f"{name}: {told}", 2)  # without the prefix of the function of the same name
    except KeyboardInterrupt:
        return _tell("", INTERRUPTED)
    except OSError as error:
        return _failed(name, error)
    return code


def _run(words: list[str]) -> int:
    parser = _parser()
    parsed = parser.parse_args(words)
    if parsed.command is None:
        parser.print_help(sys.stderr)
        return 2
    if parsed.command not in COMMANDS:
        return _tell(f"webgrad: {_unknown(parsed.command)}", 2)
    module, _ = COMMANDS[parsed.command]
    command = importlib.import_module(module)
    heed_interrupts()
    return int(command.main(parsed.rest))


# What a shell may have done to the streams


def _open_streams() -> None:
    """Open what the shell has closed as nothing, and let no stream stumble over a letter it cannot write."""
    for at, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            if name == "stdout":
                raise SystemExit(_tell("webgrad: standard output is closed: there is nowhere to write to", 2))
            if (nowhere := os.open(os.devnull, os.O_RDWR)) != at:
                os.dup2(nowhere, at)  # lest another file is opened in its place
            setattr(sys, name, os.fdopen(at, "r" if name == "stdin" else "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _tell(line: str, code: int) -> int:
    """Say a line, if anybody can hear it, and give an exit code."""
    with suppress(OSError, ValueError, AttributeError):
        print(line, file=sys.stderr, flush=True)
    return code


def _failed(name: str, error: OSError) -> int:
    """An error of the system's: the reader has seen enough, the disk is full, …"""
    _discard_output()
    if _is_closed_pipe(error):
        return 0
    reason = error.strerror or str(error)
    if error.filename is not None:
        return _tell(f"{name}: {os.fsdecode(error.filename)!r}: {reason}", 2)
    return _tell(f"{name}: the output could not be written: {reason}", 2)


def _is_closed_pipe(error: OSError) -> bool:
    """Whether the reader, `head` say, has seen enough; Windows says that an argument is not valid."""
    return isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL)


def _discard_output() -> None:
    """Let what is still in buffers go nowhere, else Python complains about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as an exception does, so that it tidies up, with the code a shell expects."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _unknown(command: str) -> str:
    near = difflib.get_close_matches(command, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}."
    return f"there is no command {command!r}; {hint}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="webgrad",
        usage="webgrad [--help] [--version] command ...",
        description="A tensor and machine-learning library for every GPU.",
        epilog=_commands() + "\n\n`webgrad command --help` says more about one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"webgrad {__version__}")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    # Each module parses its own options, --help included.
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _commands() -> str:
    width = max(map(len, COMMANDS))
    parts = []
    for title, names in GROUPS.items():
        lines = [f"  {name:{width}}  {COMMANDS[name][1]}" for name in names if name in COMMANDS]
        parts += ["\n".join([f"{title}:", *lines])] if lines else []
    return "\n\n".join(parts)
