"""What a cell of the page does: runs a program in a namespace of its own, and tells of its errors.

In: the program's text. Out: what it prints, the value of its last expression, and an error as two texts: what
its writer can see in the program, and everything.
"""

import linecache
import sys
import traceback

from pyodide.code import eval_code_async

NAME = "<cell>"


async def run_cell(text):
    """Run a program; gives None, or (the error as its writer sees it, the whole traceback)."""
    # So that a traceback shows the program's lines.
    linecache.cache[NAME] = (len(text), None, text.splitlines(keepends=True), NAME)
    try:
        value = await eval_code_async(text, {"__name__": "__main__"}, filename=NAME)
        if value is not None:
            print(repr(value))
    except SystemExit:
        return None
    except BaseException as error:
        return _told(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return None


def _told(error):
    """The program's own lines first: those of libraries say little to whoever wrote it."""
    whole = traceback.TracebackException.from_exception(error)
    first = next((at for at, frame in enumerate(whole.stack) if frame.filename == NAME), 0)
    del whole.stack[:first]  # what brought the program to run
    ending = "".join(whole.format_exception_only()).rstrip()
    places = [f"line {frame.lineno}: {frame.line}" for frame in whole.stack if frame.filename == NAME]
    return "\n".join([ending, *places]), "".join(whole.format()).rstrip()


def device_line():
    """The device that is used, in a few words."""
    import webgrad as wg

    device = wg.default_device()
    return f"{device.name}: {device.info.name}", wg.__version__
