"""The client's side of a WebSocket (RFC 6455) to a program on this machine: texts in, texts out.

In: a port of the loopback address and a path. Out: whole messages: fragments are joined, pings answered.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
import time

from tests.limits import HANG

__all__ = ["WebSocket"]

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASK = b"mask"  # it hides bytes from proxies, of which there are none here; Firefox refuses one of zeros


class WebSocket:
    """One open connection."""

    def __init__(self, port: int, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=HANG)
        self._buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        )
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())
        until = time.monotonic() + HANG
        while b"\r\n\r\n" not in self._buffer:
            self._more(until)
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.splitlines()[0]:
            raise ConnectionError(f"no WebSocket at {path}: {head.decode(errors='replace')}")

    def send(self, text: str) -> None:
        """Send one message."""
        self._send(TEXT, text.encode())

    def receive(self, until: float) -> str:
        """The next message; a TimeoutError where there is none before a time of the monotonic clock."""
        message = b""
        while True:
            final, kind, payload = self._frame(until)
            if kind == PING:
                self._send(PONG, payload)
            elif kind == CLOSE:
                raise ConnectionError("the other side closed the WebSocket")
            elif kind in (CONTINUED, TEXT, BINARY):
                message += payload
                if final:
                    return message.decode()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _send(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        self._socket.settimeout(10)
        self._socket.sendall(head + MASK + _masked(payload))

    def _frame(self, until: float) -> tuple[bool, int, bytes]:
        first, size = self._take(2, until)
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2, until))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8, until))
        return bool(first & 0x80), first & 0x0F, self._take(size, until)

    def _take(self, size: int, until: float) -> bytes:
        while len(self._buffer) < size:
            self._more(until)
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _more(self, until: float) -> None:
        # A time that has passed still lets through what is already there.
        self._socket.settimeout(max(0.001, until - time.monotonic()))
        more = self._socket.recv(1 << 20)
        if not more:
            raise ConnectionError("the other side is gone")
        self._buffer += more


def _masked(payload: bytes) -> bytes:
    """Each byte xor the mask's; by whole numbers, because a loop over a megabyte would take long."""
    repeated = (MASK * (len(payload) // 4 + 1))[: len(payload)]
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return mixed.to_bytes(len(payload), "big")
