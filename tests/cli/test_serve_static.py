"""`webgrad serve-static`: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.limits import HANG
from webgrad.cli import main
from webgrad.web.server import Server


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>here", encoding="utf-8")
    command = [sys.executable, "-m", "webgrad.cli", "serve-static", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split()[3]
        assert line == f"{tmp_path} is at {url} (Ctrl-C ends it)\n"
        with urllib.request.urlopen(url, timeout=HANG) as answer:
            assert answer.read() == b"<!doctype html>here"
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(url + "missing.js", timeout=HANG)
        missing.value.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out) == (0, "")
    assert err == "/missing.js: code 404, message Not Found\n\n"


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve-static", str(tmp_path), "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"webgrad serve-static: port {port} of 127.0.0.1 cannot be listened on: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], "missing does not exist; name the folder that an export wrote."),
        (["page.html"], "page.html is not a folder; open it in a browser, it needs no server."),
        ([".", "--port", "70000"], "'70000' is not allowed; it must be an integer from 0 to 65535"),
        ([], "the following arguments are required: DIR"),
    ],
)
def test_mistakes(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("", encoding="utf-8")
    try:
        code: object = main(["serve-static", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_other_hosts_are_warned_of_and_a_page_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def interrupted(self: Server, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(Server, "serve_forever", interrupted)
    assert main(["serve-static", str(tmp_path), "--host", "0.0.0.0", "--port", "0", "--open"]) == 0
    printed = capsys.readouterr()
    assert f"whoever reaches 0.0.0.0 can read every file in {tmp_path}" in printed.err
    assert opened == [printed.out.split()[3]]
    assert "has no index.html" in printed.err
    (tmp_path / "index.html").write_text("", encoding="utf-8")
    assert main(["serve-static", str(tmp_path), "--port", "0"]) == 0
    assert capsys.readouterr().err == "\n"
    assert len(opened) == 1
