"""Exported models give in Dawn and in browsers what they give in Python, and their pages answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.random_models import FAMILIES
from tests.models.conftest import model_path
from tests.pages import DrivenBrowser, DrivenPage
from tests.web.dawn import run_module
from tests.web.exported import Call, run_exports
from tests.web.small_models import small_bert, small_decoder
from webgrad.models import EmbeddingModel, LanguageModel
from webgrad.web.embedding import embedding_bundle, export_embedding_model
from webgrad.web.language import CHUNKS, export_language_model, language_bundle
from webgrad.web.server import serving

TOLERANCE = 1e-4
IDS = [int(each) for each in np.random.default_rng(5).integers(3, 250, 45)]
ROWS = [[int(each) for each in row] for row in np.random.default_rng(6).integers(3, 250, (8, 16))]
LENGTHS = [16, 1, 7, 3, 16, 9, 2, 5]
LIKELIEST = {"temperature": 0.7, "top_p": 1e-6, "min_p": 0.0}
ANY = {"temperature": 50.0, "top_p": 1.0, "min_p": 0.0}


def exported_decoder(folder: Path, family: str = "llama", chunks: Sequence[int] = CHUNKS) -> LanguageModel:
    """A model, and its functions in the folder; "logits" is one more, of a step."""
    model = small_decoder(folder / "model", family)
    bundle, decoding = language_bundle(model, family, context=96, chunks=chunks)
    with wg.no_grad():
        bundle.add("logits", decoding.step_logits, {"token": 0, "position": 0})
    bundle.write(folder)
    return model


def decoder_calls(model: LanguageModel, size: int = 32, draws: bool = True) -> tuple[list[Call], list[Any]]:
    """A text that is read in chunks, the last one filled up, then gone on with; another after a reset."""
    expected = model.logits(IDS).numpy()
    written = list(model.generate_ids(IDS, max_tokens=4, temperature=0))
    first = list(model.generate_ids(IDS[:1], max_tokens=1, temperature=0))
    starts = range(0, 32, size)
    calls: list[Call] = [(f"read_{size}", {"ids": IDS[at : at + size], "position": at}) for at in starts]
    calls += [
        ("read_8", {"ids": IDS[32:40], "position": 32}),
        ("read_8", {"ids": [*IDS[40:43], *[7] * 5], "position": 40}),
        ("logits", {"token": IDS[43], "position": 43}),
        ("logits", {"token": IDS[44], "position": 44}),
    ]
    results: list[Any] = [*[{}] * (len(starts) + 2), {"output": expected[43]}, {"output": expected[44]}]
    if draws:
        calls.append(("sample", {"token": IDS[44], "position": 44, **LIKELIEST}))
        results.append({"token": written[0]})
    for place, token in enumerate([IDS[44], *written[:-1]]):
        calls.append(("greedy", {"token": token, "position": 44 + place}))
        results.append({"token": written[place]})
    calls += [("reset", {}), ("greedy", {"token": IDS[0], "position": 0})]
    return calls, [*results, {"token": first[0]}]


def bert_calls(model: EmbeddingModel) -> tuple[list[Call], list[Any]]:
    batches = [(ROWS, LENGTHS, "embed_16_8"), (ROWS[2:3], LENGTHS[2:3], "embed_16_1")]
    calls: list[Call] = [(name, {"ids": ids, "lengths": lengths}) for ids, lengths, name in batches]
    results = []
    for ids, lengths, _ in batches:
        with wg.no_grad():
            found = model.pooled(wg.asarray(ids, device="cpu"), wg.asarray(lengths, device="cpu"))
        results.append({"output": found.numpy()})
    return calls, results


def check(found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, values in other.items():
            wanted = np.asarray(values)
            if wanted.dtype.kind == "i":
                assert np.asarray(one[name]).tolist() == wanted.tolist()
            else:
                np.testing.assert_allclose(one[name], wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.usefixtures("dawn")
def test_a_small_llama_gives_what_it_gives_in_python(tmp_path: Path) -> None:
    """Without draws, and by one size of chunks: drivers take long to compile kernels."""
    model = exported_decoder(tmp_path, chunks=(8,))
    calls, expected = decoder_calls(model, 8, draws=False)
    check(run_exports([(tmp_path, "", calls)])[0], expected)


@pytest.mark.web
@pytest.mark.usefixtures("dawn")
def test_a_small_bert_gives_what_it_gives_in_python(tmp_path: Path) -> None:
    model = small_bert(tmp_path / "model")
    embedding_bundle(model, "bert")[0].write(tmp_path)
    calls, expected = bert_calls(model)
    check(run_exports([(tmp_path, "", calls)])[0], expected)


@pytest.mark.web
@pytest.mark.usefixtures("dawn")
def test_draws_differ_and_are_tokens(tmp_path: Path) -> None:
    model = exported_decoder(tmp_path, chunks=(8,))
    calls: list[Call] = [("sample", {"token": 3, "position": 0, **ANY})] * 6
    tokens = [int(each["token"]) for each in run_exports([(tmp_path, "", calls)])[0]]
    assert all(0 <= token < model.settings.vocabulary for token in tokens)
    assert len(set(tokens)) > 1


@pytest.mark.web
@pytest.mark.usefixtures("dawn")
def test_every_family_of_decoders(tmp_path: Path) -> None:
    """By the kernels for software adapters, and by those that most visitors' GPUs get."""
    families = [name for name in FAMILIES if name != "bert"]
    wanted = [decoder_calls(exported_decoder(tmp_path / name, name)) for name in families]
    for variant in ("", "GPU"):
        jobs = [(tmp_path / name, variant, calls) for name, (calls, _) in zip(families, wanted, strict=True)]
        for found, (_, expected) in zip(run_exports(jobs), wanted, strict=True):
            check(found, expected)


# In browsers

RUN = """async (calls) => {
  const { open } = await import(new URL("./model.js", location.href).href);
  const model = await open();
  const answers = [];
  for (const [name, inputs] of calls) {
    if (name === "reset") await model.reset();
    else answers.push(await model.run(inputs, name));
  }
  model.close();
  const listed = ([name, { data, shape }]) => [name, { data: [...data], shape }];
  return answers.map((answer) => Object.fromEntries(Object.entries(answer).map(listed)));
}"""
EMBED = """async (texts) => {
  const from = (name) => import(new URL(name, location.href).href);
  const read = async (name) => (await fetch(name)).json();
  const [{ open }, { embedTexts }] = [await from("./model.js"), await from("./embedding.js")];
  const { makeTokenizer } = await from("./tokenizer.js");
  const tokenizer = makeTokenizer(await read("tokenizer.json"));
  const model = await open();
  const vectors = await embedTexts(model, await read("page.json"), tokenizer, texts);
  model.close();
  return vectors.map((vector) => [...vector]);
}"""
TEXTS = [
    "A man is eating food.",
    "",
    "日本語 and Émile, 12,345.67 — with marks!",
    *(f"Number {each}: " + "a longer passage of several words, " * (each % 5) for each in range(8)),
    "The river is wide and slow here, and nobody remembers when the bridge was built. " * 20,
]
PROMPT = "Write a haiku about rain."


def called(browser: DrivenBrowser, folder: Path, function: str, value: Any) -> Any:
    """What a function gives in a page without any scripts of its own, served with the folder."""
    (folder / "empty.html").write_text("<!doctype html><link rel=icon href='data:,'>", encoding="utf-8")
    with serving(folder) as address:
        page = browser.page()
        page.open(f"{address}empty.html")
        return page.evaluate(f"({function})({json.dumps(value)})")


def opened(browser: DrivenBrowser, address: str) -> DrivenPage:
    page = browser.page()
    page.open(address)
    page.wait_for("['ready', 'failed'].includes(document.body.dataset.state)")
    assert page.text("#problem") == ""
    return page


@pytest.mark.web
def test_a_small_decoder_in_browsers(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    calls, expected = decoder_calls(exported_decoder(tmp_path))
    answers = called(any_browser, tmp_path, RUN, calls)
    check(
        [
            {name: np.reshape(each["data"], each["shape"]) for name, each in answer.items()}
            for answer in answers
        ],
        expected,
    )


@pytest.mark.web
def test_minilm_in_browsers(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    """Vectors are Python's, and the page finds what its example asks for."""
    model = wg.models.load(model_path("minilm"), device="cpu")
    assert isinstance(model, EmbeddingModel)
    export_embedding_model(model, tmp_path, name="Search with MiniLM")
    vectors = called(any_browser, tmp_path, EMBED, TEXTS)
    np.testing.assert_allclose(vectors, model.embed(TEXTS).numpy(), atol=TOLERANCE, rtol=0)
    with serving(tmp_path) as address:
        page = opened(any_browser, address)
        page.wait_for("document.querySelectorAll('#hits li').length > 0")
        assert page.text("h1") == "Search with MiniLM"
        assert "Bees tell each other by a dance" in page.text("#hits li")
        assert page.errors() == []
        assert page.screenshot(tmp_path / "search.png").startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LanguageModel]:
    """SmolLM2's page, and the model itself."""
    folder = tmp_path_factory.mktemp("smollm2")
    model = wg.models.load(model_path("smollm2:135m"), device="cpu")
    assert isinstance(model, LanguageModel)
    export_language_model(model, folder, name="SmolLM2")
    return folder, model


def answer_of(model: LanguageModel, count: int) -> Any:
    """The first tokens of an answer, and its text."""
    generation = model.chat([{"role": "user", "content": PROMPT}], temperature=0, max_tokens=count)
    list(generation)
    return generation


@pytest.mark.web
def test_smollm2_answers_in_its_page(any_browser: DrivenBrowser, smollm2: tuple[Path, LanguageModel]) -> None:
    folder, model = smollm2
    with serving(folder) as address:
        page = opened(any_browser, address)
        page.evaluate("(document.getElementById('greedy').checked = true)")
        page.evaluate("(document.getElementById('most').value = '16')")
        page.click("#text")
        page.type(PROMPT)
        page.press("Enter")
        page.wait_for("document.querySelector('.answer:not(.going)') !== null")
        assert page.text("h1") == "SmolLM2"
        assert page.text(".answer .words") == answer_of(model, 16).text
        assert page.text(".answer .under").find("16 tokens · ") > 0
        assert page.errors() == []
        assert page.screenshot(folder / "chat.png", whole=False).startswith(b"\x89PNG")


@pytest.mark.web
@pytest.mark.usefixtures("dawn")
@pytest.mark.parametrize(("variant", "most"), [({}, 32), ({"variant": "GPU"}, 6)])
def test_smollm2_writes_in_dawn_what_it_writes_in_python(
    smollm2: tuple[Path, LanguageModel], variant: dict[str, str], most: int
) -> None:
    """By the kernels for software adapters, and by those of most visitors' GPUs, which are slow here."""
    folder, model = smollm2
    asked = {"folder": f"{folder.as_uri()}/", "prompt": PROMPT, "most": most, **variant}
    found = run_module(Path(__file__).parent / "generate.mjs", asked)
    expected = answer_of(model, most)
    assert found["prompt"] == expected.prompt_ids
    assert found["ids"] == expected.ids
    assert found["again"] == expected.ids
    assert found["cached"] == len(expected.prompt_ids) - 1
