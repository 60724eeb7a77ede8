"""The tokenizer of pages in browsers, whose Unicode tables and expressions are others than node's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.models.conftest import model_path
from tests.pages import DrivenPage
from tests.web.test_tokenizer import smollm2
from tests.web.tokens import check_ids, difficult_texts
from webgrad.models.tokenizer import Tokenizer
from webgrad.web import tokenizer_data
from webgrad.web.server import serving

pytestmark = pytest.mark.web
TOKENIZER = Path(tokenizer_data.__file__).with_name("tokenizer.js")
ENCODE = """
(async () => {
  const { makeTokenizer } = await import("./tokenizer.js");
  const read = async (name) => (await fetch(name)).json();
  const tokenizer = makeTokenizer(await read("./%s.json"));
  return (await read("./texts.json")).map((text) => tokenizer.encode(text));
})()
"""


def test_real_models_on_difficult_texts(web_page: DrivenPage, tmp_path: Path) -> None:
    texts = difficult_texts(1500, seed=7)
    ways = {"smol": smollm2(), "minilm": Tokenizer.from_folder(model_path("minilm"))}
    shutil.copy(TOKENIZER, tmp_path)
    (tmp_path / "index.html").write_text("<!doctype html><title>Tokens</title>", encoding="utf-8")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    for name, tokenizer in ways.items():
        (tmp_path / f"{name}.json").write_bytes(tokenizer_data.tokenizer_file(tokenizer))
    with serving(tmp_path) as address:
        web_page.open(address)
        for name, tokenizer in ways.items():
            found = web_page.evaluate(ENCODE % name)
            check_ids(name, texts, found, [tokenizer.encode(text) for text in texts])
