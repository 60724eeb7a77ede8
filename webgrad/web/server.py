"""A folder over HTTP, for trying exported pages: what `webgrad serve-static` and the tests serve with.

In: a folder. Out: a server whose files a browser may keep but always asks about (ETag, Last-Modified), so
that a new export is seen at once; parts of files (Range) too. Nothing outside of the folder is given, by no
path and no symbolic link, nothing hidden, and on loopback nothing to pages of other sites.
"""

from __future__ import annotations

import contextlib
import email.utils
import html
import http.server
import ipaddress
import os
import re
import socket
import socketserver
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote_to_bytes

from ..errors import ArgumentError

__all__ = ["LOOPBACK", "Server", "is_loopback", "listen", "serving"]

LOOPBACK = "127.0.0.1"
FIRST_PORT = 8000
TRIED_PORTS = 20  # from the first, where the user named none
IDLE_SECONDS = 60.0
MOST_TOLD = 200  # characters of a request, where one is told of
UTF8 = "; charset=utf-8"
OTHER_TYPE = "application/octet-stream"  # safetensors, wheels, and whatever else there is
# A table of our own: Python's asks the system, which may say that .js is plain text, and .ts a film.
TYPES: Mapping[str, str] = {
    ".html": "text/html" + UTF8,
    ".htm": "text/html" + UTF8,
    ".css": "text/css" + UTF8,
    ".js": "text/javascript" + UTF8,
    ".mjs": "text/javascript" + UTF8,
    ".ts": "text/plain" + UTF8,
    ".json": "application/json",
    ".map": "application/json",
    ".wasm": "application/wasm",
    ".txt": "text/plain" + UTF8,
    ".md": "text/plain" + UTF8,
    ".py": "text/plain" + UTF8,
    ".wgsl": "text/plain" + UTF8,
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".zip": "application/zip",
}
# With them a page may share memory between threads, and must ask no other site for anything.
ISOLATION: Mapping[str, str] = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder once `serve_forever` is called; `close` ends it with all of its connections."""

    request_queue_size = 64
    # Elsewhere it frees ports of servers that ended; on Windows it takes them from ones that run.
    allow_reuse_address = os.name != "nt"

    def __init__(
        self, folder: Path, host: str, port: int, isolated: bool, report: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self.host = host
        self.headers = ISOLATION if isolated else {}
        self.report = report
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._connections: set[socket.socket] = set()
        super().__init__((host, port), Handler)

    @property
    def url(self) -> str:
        """The folder's address."""
        shown = {"": LOOPBACK, "0.0.0.0": LOOPBACK, "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.server_port}/"

    def server_bind(self) -> None:
        """Take the port; http.server's own asks the network for this machine's name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been answered."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of an error; a browser that goes away before its answer is complete is none."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.report(f"internal error: {error!r}")

    def close(self) -> None:
        """Give the port back, and end every connection."""
        self.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"  # connections are used again
    server_version = "webgrad"
    sys_version = ""
    timeout = IDLE_SECONDS
    server: Server

    def do_GET(self) -> None:
        """A file, a part of it, or the list of a folder."""
        self._answer()

    def do_HEAD(self) -> None:
        """The same without its content."""
        self._answer()

    def end_headers(self) -> None:
        """Add what every answer has."""
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: only errors are told of."""

    def log_error(self, format: str, *arguments: object) -> None:
        """Tell of what could not be given."""
        told = f"{getattr(self, 'path', '')[:MOST_TOLD]}: {(format % arguments)[:MOST_TOLD]}"
        # What a stranger asked for may hold what terminals obey.
        self.server.report("".join(each if each.isprintable() else ascii(each)[1:-1] for each in told))

    def _answer(self) -> None:
        if is_loopback(self.server.host) and not _is_this_machine(self.headers.get("Host", "")):
            # Another site's name that leads here: its page must not read what is served (DNS rebinding).
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers to the names of this machine only")
            return
        path = re.split("[?#]", self.path, maxsplit=1)[0]
        found = find_file(self.server.folder, path)
        if found is None or (path.endswith("/") and not found.is_dir()):
            self.send_error(HTTPStatus.NOT_FOUND)
        elif not found.is_dir():
            self._send_file(found)
        elif not path.endswith("/"):
            self._send_text(
                HTTPStatus.MOVED_PERMANENTLY, "", {"Location": _address(self.server.folder, found)}
            )
        elif (index := find_file(self.server.folder, path + "index.html")) and index.is_file():
            self._send_file(index)
        else:
            self._send_text(HTTPStatus.OK, _listing(self.server.folder, found))

    def _send_text(self, status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> None:
        content = text.encode("utf-8", errors="replace")
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", TYPES[".html"])
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_file(self, path: Path) -> None:
        try:
            file = path.open("rb")
        except OSError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with file:
            known = os.fstat(file.fileno())
            etag = f'"{known.st_mtime_ns:x}-{known.st_size:x}"'
            modified = email.utils.formatdate(known.st_mtime, usegmt=True)
            headers = {"Cache-Control": "no-cache", "ETag": etag, "Last-Modified": modified}
            if self._is_known(etag, known.st_mtime):
                self._start(HTTPStatus.NOT_MODIFIED, headers)
                return
            headers |= {
                "Content-Type": TYPES.get(path.suffix.lower(), OTHER_TYPE),
                "Accept-Ranges": "bytes",
            }
            self._send_part(file, known.st_size, headers, self._range(etag, modified))

    def _send_part(self, file: BinaryIO, size: int, headers: dict[str, str], asked: str) -> None:
        """Send what a Range header asks for, all where it asks for nothing that we understand."""
        part = parse_range(asked, size)
        if part == (0, 0) and asked:
            self._start(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"}, 0)
            return
        status, (start, end) = HTTPStatus.OK, (0, size)
        if part is not None:
            status, (start, end) = HTTPStatus.PARTIAL_CONTENT, part
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._start(status, headers, end - start)
        if self.command != "HEAD" and end > start:
            sent = self.connection.sendfile(file, start, end - start)
            # Cut short while it was sent, by a new export say: the browser must not wait for the rest.
            self.close_connection |= sent < end - start

    def _start(self, status: HTTPStatus, headers: Mapping[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _is_known(self, etag: str, modified: float) -> bool:
        """Whether the browser has this very file."""
        if tags := self.headers.get("If-None-Match"):
            known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
            return etag in known or "*" in known
        if since := self.headers.get("If-Modified-Since"):
            with contextlib.suppress(ValueError, OverflowError):
                return int(modified) <= email.utils.parsedate_to_datetime(since).timestamp()
        return False

    def _range(self, etag: str, modified: str) -> str:
        """The Range header, unless it is about another state of the file."""
        condition = self.headers.get("If-Range")
        if self.command != "GET" or condition not in (None, etag, modified):
            return ""
        return str(self.headers.get("Range", ""))


def find_file(folder: Path, path: str) -> Path | None:
    """The file or folder that a request's path names, or None; links may lead to others inside."""
    parts = [part for part in os.fsdecode(unquote_to_bytes(path)).split("/") if part]
    # On Windows these are ways to other folders; elsewhere nothing that we write has such a name.
    if any(part.startswith(".") or "\\" in part or ":" in part for part in parts):
        return None
    try:
        found = folder.joinpath(*parts).resolve(strict=True)
        kind = found.stat().st_mode
    except (OSError, ValueError, RuntimeError):  # missing, a zero in the name, links in a circle
        return None
    inside = found.is_relative_to(folder)
    return found if inside and (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) else None


def parse_range(asked: str, size: int) -> tuple[int, int] | None:
    """Start and end of a Range header's part; (0, 0) where the file has no such part, None for no range."""
    matched = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", asked.strip(), re.ASCII)
    if matched is None or not any(matched.groups()):
        return None  # none, or several: HTTP lets us send everything
    first, last = matched.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
        if last and int(last) < int(first):
            return None
    return (start, end) if start < end else (0, 0)


def _address(folder: Path, found: Path) -> str:
    """The path of a folder in its address; it begins with one slash, so that it leads to no other host."""
    parts = found.relative_to(folder).parts
    return "/" + "".join(f"{quote(os.fsencode(part))}/" for part in parts)


def _listing(folder: Path, found: Path) -> str:
    names = sorted(
        each.name + "/" * each.is_dir() for each in found.iterdir() if not each.name.startswith(".")
    )
    rows = [f'<li><a href="./{quote(os.fsencode(name))}">{html.escape(name)}</a>' for name in names]
    title = html.escape(_address(folder, found))
    head = f"<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><title>{title}</title>"
    return f"{head}<h1>{title}</h1><ul>{''.join(rows)}</ul>\n"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a host's address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_this_machine(host: str) -> bool:
    """Whether a Host header, with its port, names this machine; HTTP/1.0 has none."""
    name = re.sub(r":\d*$", "", host).strip("[]")
    return not host or is_loopback(name)


def listen(
    folder: str | os.PathLike[str],
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    isolated: bool = False,
    report: Callable[[str], None] = lambda text: None,
) -> Server:
    """A server of a folder, on a port that is free where none is named; 0 lets the system choose."""
    root = Path(folder)
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "does not exist"
        alone = root.is_file() and root.suffix.lower() in (".html", ".htm")
        otherwise = (
            "open it in a browser, it needs no server" if alone else "name the folder that an export wrote"
        )
        raise ArgumentError(f"{root} {what}; {otherwise}.")
    for each in range(FIRST_PORT, FIRST_PORT + TRIED_PORTS) if port is None else ():
        with contextlib.suppress(OSError):  # taken; what else there is comes again with the last one
            return Server(root.resolve(), host, each, isolated, report)
    try:
        return Server(root.resolve(), host, port or 0, isolated, report)
    except (OSError, UnicodeError) as error:  # the second for a host that no name can be
        why = getattr(error, "strerror", None) or str(error)
        where = host if port is None else f"port {port} of {host}"
        raise ArgumentError(f"{where} cannot be listened on: {why}; name another one, or none.") from error


@contextlib.contextmanager
def serving(
    folder: str | os.PathLike[str], *, host: str = LOOPBACK, port: int = 0, isolated: bool = False
) -> Iterator[str]:
    """Serve a folder while the block runs, and give its address.

    >>> import tempfile, urllib.request
    >>> from webgrad.web.server import serving
    >>> with tempfile.TemporaryDirectory() as folder, serving(folder) as url:
    ...     urllib.request.urlopen(url).status
    200
    """
    server = listen(folder, host=host, port=port, isolated=isolated)
    # A quick answer to the end: half a second a test would add up.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.close()
        thread.join()
