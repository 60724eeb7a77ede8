"""The server of exported pages: types, parts, what is known already, and nothing outside of the folder."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.limits import HANG
from webgrad.errors import ArgumentError
from webgrad.web import server as module
from webgrad.web.server import is_loopback, listen, parse_range, serving

WORDS = b"0123456789"


class Client:
    """One connection, used again and again."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(str(urlsplit(url).netloc), timeout=HANG)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, headers=named)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def status(self, path: str, method: str = "GET", **headers: str) -> int:
        return self.ask(path, method, **headers)[0].status


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("served")
    (top / "secret.txt").write_bytes(b"outside")
    out = top / "out"
    (out / "pages" / "ä b").mkdir(parents=True)
    (out / "words.bin").write_bytes(WORDS)
    (out / "empty.js").write_bytes(b"")
    (out / "pages" / "index.html").write_text("<!doctype html>hello", encoding="utf-8")
    (out / "pages" / "ä b" / "<x>.txt").write_text("text", encoding="utf-8")
    (out / ".env").write_text("hidden", encoding="utf-8")
    if sys.platform != "win32":
        (out / "link.txt").symlink_to(top / "secret.txt")
        (out / "away").symlink_to(top)
        (out / "round").symlink_to(out / "round")
        (out / "inside.bin").symlink_to("words.bin")
        os.mkfifo(out / "pipe")
    return out


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with serving(folder) as url:
        client = Client(url)
        yield client
        client.connection.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("runner.js", "text/javascript; charset=utf-8"),
        ("module.mjs", "text/javascript; charset=utf-8"),
        ("model.d.ts", "text/plain; charset=utf-8"),
        ("INDEX.HTML", "text/html; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
        ("plan.json", "application/json"),
        ("pyodide.asm.wasm", "application/wasm"),
        ("weights.safetensors", "application/octet-stream"),
        ("webgrad.whl", "application/octet-stream"),
        ("none", "application/octet-stream"),
    ],
)
def test_types(name: str, kind: str, folder: Path, client: Client) -> None:
    (folder / name).write_bytes(WORDS)
    answer, content = client.ask(f"/{name}")
    assert (answer.status, answer.headers["Content-Type"], content) == (200, kind, WORDS)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Cross-Origin-Embedder-Policy" not in answer.headers


def test_heads_and_empty_files(client: Client) -> None:
    answer, content = client.ask("/words.bin", "HEAD")
    assert (answer.status, answer.headers["Content-Length"], content) == (200, "10", b"")
    answer, content = client.ask("/empty.js")
    assert (answer.status, answer.headers["Content-Length"], content) == (200, "0", b"")
    assert client.status("/words.bin", "POST") == 501


@pytest.mark.parametrize(
    ("asked", "status", "content", "where"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=7-99", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 206, WORDS, "bytes 0-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=-0", 416, b"", "bytes */10"),
        ("bytes=0-1,4-5", 200, WORDS, None),
        ("bytes=4-2", 200, WORDS, None),
        ("bytes=-", 200, WORDS, None),
        ("bytes=" + "9" * 5000 + "-", 200, WORDS, None),
        ("pages=1-2", 200, WORDS, None),
    ],
)
def test_parts(asked: str, status: int, content: bytes, where: str | None, client: Client) -> None:
    answer, found = client.ask("/words.bin", Range=asked)
    assert (answer.status, found, answer.headers["Content-Range"]) == (status, content, where)


def test_a_part_of_an_empty_file() -> None:
    assert parse_range("bytes=0-", 0) == (0, 0)
    assert parse_range("", 0) is None


def test_what_the_browser_has_is_not_sent_again(folder: Path, client: Client) -> None:
    file = folder / "changing.json"
    file.write_text("{}", encoding="utf-8")
    first, _ = client.ask("/changing.json")
    etag, date = first.headers["ETag"], first.headers["Last-Modified"]
    assert first.headers["Cache-Control"] == "no-cache"
    for headers in (
        {"If_None_Match": etag},
        {"If_None_Match": f'"other", W/{etag}'},
        {"If_None_Match": "*"},
        {"If_Modified_Since": date},
    ):
        answer, content = client.ask("/changing.json", **headers)
        assert (answer.status, content) == (304, b"")
    assert client.status("/changing.json", If_None_Match='"other"', If_Modified_Since=date) == 200
    assert client.status("/changing.json", If_Modified_Since="no date") == 200
    assert client.status("/changing.json", Range="bytes=0-0", If_Range=etag) == 206
    file.write_text("[]", encoding="utf-8")
    later = time.time() + 5
    os.utime(file, (later, later))
    assert client.status("/changing.json", If_None_Match=etag) == 200
    assert client.status("/changing.json", If_Modified_Since=date) == 200
    assert client.status("/changing.json", Range="bytes=0-0", If_Range=etag) == 200


def test_folders(client: Client) -> None:
    assert client.ask("/pages/")[1] == b"<!doctype html>hello"
    answer, _ = client.ask("/pages?x=1")
    assert (answer.status, answer.headers["Location"]) == (301, "/pages/")
    answer, _ = client.ask("//pages/%C3%A4%20b")
    assert (answer.status, answer.headers["Location"]) == (301, "/pages/%C3%A4%20b/")
    answer, content = client.ask("/pages/%C3%A4%20b/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'<a href="./%3Cx%3E.txt">&lt;x&gt;.txt</a>' in content
    assert client.ask("/pages/%C3%A4%20b/%3Cx%3E.txt?version=2")[1] == b"text"
    assert b".env" not in client.ask("/")[1]


@pytest.mark.parametrize(
    "path",
    [
        "/missing",
        "/../secret.txt",
        "/pages/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/..%5csecret.txt",
        "/c:/secret.txt",
        "/.env",
        "/link.txt",
        "/away/",
        "/away/secret.txt",
        "/round",
        "/pipe",
        "/words.bin%00.js",
        "/words.bin/",
        "/words.bin/more",
        "/%ff%fe",
        "/" + "x" * 5000,
    ],
)
def test_nothing_outside_of_the_folder(path: str, client: Client) -> None:
    answer, content = client.ask(path)
    assert answer.status == 404
    assert b"outside" not in content


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_inside_are_followed(client: Client) -> None:
    assert client.ask("/inside.bin")[1] == WORDS


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:1", 200),
        ("example.org", 403),
        ("localhost.example.org:80", 403),
    ],
)
def test_only_names_of_this_machine_are_answered_to(host: str, status: int, client: Client) -> None:
    assert client.status("/words.bin", Host=host) == status


def test_isolation(folder: Path) -> None:
    with serving(folder, isolated=True) as url:
        client = Client(url)
        for path in ("/words.bin", "/missing", "/"):
            headers = client.ask(path)[0].headers
            assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        client.connection.close()


def test_a_file_that_shrinks_while_it_is_sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(self: socket.socket, file: object, offset: int, count: int) -> int:
        self.sendall(WORDS[: count // 2])
        return count // 2

    with serving(folder) as url:
        client = Client(url)
        monkeypatch.setattr("socket.socket.sendfile", cut)
        with pytest.raises(http.client.IncompleteRead):
            client.ask("/words.bin")
        client.connection.close()


def test_what_is_told_of_a_request_is_short_and_plain(folder: Path) -> None:
    told: list[str] = []
    server = listen(folder, port=0, report=told.append)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(b"GET /\x1b[2J" + b"x" * 5000 + b" HTTP/1.0\r\n\r\n")
        assert b"404" in connection.makefile("rb").readline()
    thread.join()
    server.close()
    assert len(told) == 1
    assert told[0].startswith("/\\x1b[2Jxxx")
    assert len(told[0]) < 300


def test_an_end_with_open_connections(folder: Path) -> None:
    with serving(folder) as url:
        client = Client(url)
        assert client.status("/words.bin") == 200
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        client.ask("/words.bin")
    client.connection.close()


def test_ports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=rf"port {port} of 127\.0\.0\.1 cannot be listened on"):
            listen(folder, port=port)
        monkeypatch.setattr(module, "FIRST_PORT", port)
        server = listen(folder)
        assert server.server_port != port
        server.close()
        monkeypatch.setattr(module, "TRIED_PORTS", 1)
        server = listen(folder)  # none is left but those of the system's choice
        assert server.server_port != port
        server.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "." * 70, "256.1.1.1"])
def test_hosts_that_there_are_not(host: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIED_PORTS", 1)
    with pytest.raises(ArgumentError, match="cannot be listened on"):
        listen(folder, host=host)


def test_folders_that_there_are_not(folder: Path) -> None:
    with pytest.raises(ArgumentError, match="missing does not exist"):
        listen(folder / "missing")
    with pytest.raises(ArgumentError, match=r"words\.bin is not a folder"):
        listen(folder / "words.bin")


def test_addresses(folder: Path) -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "", "10.0.0.1", "::", "example.org")] == [False] * 5
    server = listen(folder, host="0.0.0.0", port=0)
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    server.close()
