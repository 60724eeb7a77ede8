"""The benchmark's files for a browser, from the loopback interface.

In: folders by the first part of an address. Out: a server; what pages post to /result/NAME is kept by name.
Pages are isolated from others, which WebAssembly threads ask for, and nothing is cached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["Server", "serving"]

HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """Folders, and what was posted."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folders = folders
        self.posted: dict[str, bytes] = {}

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(SimpleHTTPRequestHandler):
    server: Server
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def translate_path(self, path: str) -> str:
        """The file of an address; the base class has cut off what leads out of a folder."""
        first, _, rest = super().translate_path(path).removeprefix(f"{Path.cwd()}/").partition("/")
        folder = self.server.folders.get(first)
        return str(folder / rest) if folder else ""

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def do_POST(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.posted[name] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the page tells what it misses."""


@contextmanager
def serving(folders: Mapping[str, Path]) -> Iterator[Server]:
    """A server in a thread of its own, until the end of the block."""
    server = Server(folders)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
