"""`webgrad serve-static`: a folder over HTTP, for trying what `webgrad export` wrote.

In: a folder. Out: its address, and its files to browsers of this machine until Ctrl-C; to others only where
--host says so.
"""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Sequence

from ..web.server import LOOPBACK, is_loopback, listen
from .options import Parser, checked, whole

__all__ = ["main"]

WARNING = (
    "webgrad serve-static: whoever reaches {host} can read every file in {folder}; over plain HTTP other "
    "machines' browsers have no WebGPU, only this one's"
)


def main(arguments: Sequence[str]) -> int:
    """Serve a folder until Ctrl-C."""
    options = _parser().parse_args(arguments)
    server = listen(
        options.folder, host=options.host, port=options.port, isolated=options.isolated, report=_report
    )
    try:
        if not is_loopback(options.host):
            print(WARNING.format(host=options.host, folder=options.folder), file=sys.stderr)
        print(f"{options.folder} is at {server.url} (Ctrl-C ends it)", flush=True)
        if not (server.folder / "index.html").is_file():
            print(f"webgrad serve-static: {options.folder} has no index.html", file=sys.stderr)
        if options.open:
            webbrowser.open(server.url)
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the terminal shows ^C on the line that what follows would begin on
    finally:
        server.close()
    return 0


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="webgrad serve-static",
        description="Serve a folder to browsers of this machine, to try what `webgrad export` wrote.",
    )
    parser.add_argument("folder", metavar="DIR", help="the folder")
    parser.add_argument(
        "--port",
        type=checked(whole(0, 65535), "an integer from 0 to 65535"),
        metavar="N",
        help="0: any that is free (default: 8000, or the next that is free)",
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK,
        help=f"the address to listen on (default: {LOOPBACK}, which other machines do not reach)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--isolated",
        action="store_true",
        help="with the headers that let pages share memory between threads, and load nothing of other sites",
    )
    return parser
