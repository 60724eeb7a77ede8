"""Folders of pages with mocks of a model and a tokenizer, and a server for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webgrad.web.page import page_files
from webgrad.web.server import serving

MOCKS = Path(__file__).parent / "mocks"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
FACTS: Mapping[str, dict[str, Any]] = {
    "plain": {"title": "Scale & shift"},
    "chat": {
        "title": "Mock 135M",
        "context": 400,
        "room": 432,
        "stopIds": [2],
        "chunks": [32, 8],
        "functions": {"read": "read_{size}", "greedy": "greedy", "sample": "sample"},
        "sampling": {"temperature": 0.7, "top_k": 40, "top_p": 0.9},
        "tokenizer": "tokenizer.json",
        "chat": {"between": ": "},
        "examples": ["What is a tensor?", "Write a haiku about rain."],
    },
    "search": {
        "title": "Search with Mock",
        "tokenizer": "tokenizer.json",
        "functions": [
            {"name": "embed_16", "rows": 4, "length": 16},
            {"name": "embed_64", "rows": 4, "length": 64},
            {"name": "query_64", "rows": 1, "length": 64},
        ],
        "inputs": {"ids": "ids", "lengths": "lengths"},
        "longest": 64,
        "text": "",
    },
    "paint": {
        "title": "Pets & more",
        "layouts": [
            {"name": "1_4_4", "count": 1, "height": 4, "width": 4},
            {"name": "3_4_4", "count": 3, "height": 4, "width": 4},
        ],
        "numbers": ["timestep", "by_x"],
        "schedules": {"2": {"start": 1.0, "rows": [[1000.0, 1.0], [500.0, 0.5]]}},
        "steps": 2,
        "draws": {"begin": ["random_1", "random_2", "random_3", "random_4"], "step": []},
        "classes": [[0, "cat"], [1, "<b>dog</b>"]],
        "noClass": 2,
        "guidance": 2.0,
    },
    "classifier": {
        "title": "Fashion-MNIST",
        "function": "run",
        "input": "x",
        "output": "output",
        "height": 28,
        "width": 28,
        "channels": 1,
        "inverted": True,
        "labels": [
            "T-shirt",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Boot",
        ],
        "samples": [{"label": "Dress", "image": PIXEL}],
    },
}
PLAN = """{"format": "webgrad-plan", "version": 1, "state": {"memory": {}}, "functions": {
"scale": {"inputs": {"x": {"kind": "tensor", "dtype": "float32", "shape": [2, 3], "bytes": 24},
                     "rate": {"kind": "number", "dtype": "float32", "example": 0.25},
                     "number_2": {"kind": "number", "dtype": "float32", "default": 0.09999999999999998},
                     "draw0": {"kind": "random", "dtype": "int32"}},
          "outputs": {"output": {"dtype": "float32", "shape": [2, 3], "bytes": 24}}},
"large": {"inputs": {"x": {"kind": "tensor", "dtype": "float32", "shape": [100, 100], "bytes": 40000}},
          "outputs": {"output": {"dtype": "float32", "shape": [100, 100], "bytes": 40000}}}}}"""


def mock_files(kind: str, **facts: Any) -> dict[str, bytes]:
    """The files of a page of a kind with the mocks."""
    files = page_files(kind, FACTS[kind] | facts)
    files |= {path.name: path.read_bytes() for path in MOCKS.glob("*.js")}
    return files | {"plan.json": PLAN.encode(), "tokenizer.json": b"{}"}


@contextmanager
def served(folder: Path, files: Mapping[str, bytes]) -> Iterator[str]:
    """The address of a server on this machine for these files."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with serving(folder) as address:
        yield address
