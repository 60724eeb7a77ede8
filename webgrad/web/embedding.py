"""An embedding model as a search page: texts of a few lengths in, one vector each out.

In: an `EmbeddingModel`. Out: a folder, or one HTML file. The functions are embed_LENGTH_ROWS, of ids
(rows, length) and lengths (rows,); masks, pooling and norms are the model's own, on the device.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import webgrad as wg
from webgrad.models import EmbeddingModel

from ..jit.tensor_names import named_tensors
from .bundle import Bundle
from .folder import write_export
from .tokenizer_data import tokenizer_file

__all__ = ["embedding_bundle", "export_embedding_model"]

LENGTHS = (16, 64, 256, 512)  # tokens, as far as the model goes
ROWS = (1, 8)  # texts at once: a query, and passages
TEXT = """Bread rises because yeast turns sugar into gas, which the dough holds.

A lighthouse warns ships of rocks and shows them the way into the harbour.

Vaccines show the immune system what a germ looks like, so that it is ready when the real one comes.

The Danube flows through ten countries, more than any other river.

Bees tell each other by a dance where flowers are, and how far.

To save electricity, switch the heating down at night and air the rooms briefly."""
QUERY = "How do insects talk to each other?"
Report = Callable[[str], None]


@wg.no_grad()
def export_embedding_model(
    model: EmbeddingModel,
    path: str | os.PathLike[str],
    *,
    single_file: bool = False,
    overwrite: bool = False,
    name: str = "",
    report: Report = lambda line: None,
) -> Path:
    """Write a page that searches texts by their meaning, and give the path of its HTML file.

    `report` hears of what is being done.
    """
    title = name or f"Search with {model.settings.encoder.architecture}"
    tokenizer = tokenizer_file(model.tokenizer)
    bundle, functions = embedding_bundle(model, title)
    report(f"planning {', '.join(bundle.graphs)}; texts of up to {model.settings.longest:,} tokens")
    facts = {
        "title": title,
        "tokenizer": "tokenizer.json",
        "functions": functions,
        "inputs": {"ids": "ids", "lengths": "lengths"},
        "longest": model.settings.longest,
        "lowerCase": model.settings.lower_case,
        "text": TEXT,
        "query": QUERY,
    }
    files = {"tokenizer.json": tokenizer}
    return write_export(bundle, path, "search", facts, files, single_file=single_file, overwrite=overwrite)


@wg.no_grad()
def embedding_bundle(model: EmbeddingModel, title: str) -> tuple[Bundle, list[dict[str, object]]]:
    """The functions of an embedding model, and what the page is told of them."""
    bundle = Bundle(title, named_tensors([model.encoder]))
    functions: list[dict[str, object]] = []
    for length in sorted({min(each, model.settings.longest) for each in LENGTHS}):
        for rows in ROWS:
            name = f"embed_{length}_{rows}"
            ids = wg.zeros((rows, length), dtype=wg.int32, device="cpu")
            bundle.add(
                name, model.pooled, {"ids": ids, "lengths": wg.ones(rows, dtype=wg.int32, device="cpu")}
            )
            functions.append({"name": name, "rows": rows, "length": length})
    return bundle, functions
