"""`webgrad export`: which page a model gets, what is said of it, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.models.test_llama import made
from tests.models.test_tokenizer import BYTE_TOKENS, byte_level, metadata
from tests.web.small_models import small_bert
from webgrad.cli import main, protocols
from webgrad.models import LanguageModel, Tokenizer

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def talker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    """A model that writes bytes by chance is the one that is loaded."""
    bare, _, _ = made(tmp_path / "model", "cpu", vocab_size=272, num_hidden_layers=1)
    tokenizer = Tokenizer.from_gguf(byte_level() | {"tokenizer.chat_template": TEMPLATE})
    found = LanguageModel(bare.decoder, tokenizer, None, bare.device)
    monkeypatch.setattr(protocols, "load", lambda *arguments: found)
    return found


def facts_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.usefixtures("talker")
def test_a_chat_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["export", "models/tiny.gguf", str(out), "--context", "64"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{out / 'index.html'}\n"
    planning, sizes, hint = printed.err.splitlines()
    caches = (64 + 128) * 2 * 2 * 16 * 4  # positions, keys and values, heads, columns, bytes
    assert planning.startswith("planning read_128, read_32, read_8, greedy, sample; context 64 tokens")
    assert planning.endswith(f"caches take {caches / 1e6:,.0f} MB")
    assert "of them weights, in" in sizes
    assert hint == f"try it: webgrad serve-static {out}"
    facts = facts_of(out)
    assert (facts["title"], facts["context"], facts["room"]) == ("tiny", 64, 192)
    assert facts["chat"]["contents"].keys() == {"system", "user", "assistant"}
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    assert list(plan["state"]) == ["cache.0"]
    assert plan["state"]["cache.0"]["tensor"] is None
    assert "embed_tokens.weight" in plan["tensors"]
    assert all(each["copies"] == [] for variant in plan["variants"] for each in variant["functions"].values())
    assert {each.name for each in out.iterdir()} >= {
        "tokenizer.json",
        "tokenizer.js",
        "chat.js",
        "page_chat.js",
    }


@pytest.mark.parametrize(
    ("told_of_tokens", "words"),
    [
        (metadata("gpt2", BYTE_TOKENS, merges=[], eos_token_id=0), "the model has no chat template"),
        (byte_level() | {"tokenizer.chat_template": "{{ messages | length }}"}, "template"),
    ],
)
def test_a_model_without_a_template_for_pages_goes_on_with_texts(
    talker: LanguageModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    told_of_tokens: dict[str, Any],
    words: str,
) -> None:
    talker._tokenizer = Tokenizer.from_gguf(told_of_tokens)
    arguments = [str(tmp_path / "page.html"), "--name", "Mine", "--context", "16", "--json"]
    assert main(["export", "any", *arguments]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["page"], told["kind"]) == (arguments[0], "chat")
    assert told["bytes"] == told["files"]["page.html"] == (tmp_path / "page.html").stat().st_size
    first = printed.err.splitlines()[0]
    assert words in first
    assert first.endswith("the page goes on with plain text")
    assert "<title>Mine</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_search_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [("[PAD]", 3), ("[UNK]", 2), ("[CLS]", 3), ("[SEP]", 3), ("▁eat", 1), ("ing", 1)]
    ids = {"unknown_token_id": 1, "cls_token_id": 2, "seperator_token_id": 3, "padding_token_id": 0}
    model = small_bert(tmp_path / "model", Tokenizer.from_gguf(metadata("bert", words, **ids)))
    monkeypatch.setattr(protocols, "load", lambda *arguments: model)
    out = tmp_path / "out"
    assert main(["export", "minilm", str(out)]) == 0
    assert capsys.readouterr().err.startswith("planning embed_16_1, embed_16_8; texts of up to 16 tokens\n")
    facts = facts_of(out)
    assert (facts["title"], facts["longest"]) == ("Search with all-MiniLM-L6-v2", 16)
    assert facts["functions"][1] == {"name": "embed_16_8", "rows": 8, "length": 16}
    with pytest.raises(SystemExit) as caught:
        main(["export", "minilm", str(out), "--context", "3"])
    assert caught.value.code == 2
    assert "--context is for models that write" in capsys.readouterr().err


@pytest.mark.usefixtures("talker")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["out", "--context", "9999"], "context is from 1 to 256, the model's own, not 9,999"),
        (["file"], "file is a file; name a folder, or one HTML file"),
        (["file/out"], "file is a file; name a folder"),
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
    Path("file").write_text("", encoding="utf-8")
    assert main(["export", "any", *arguments]) == 2
    text = capsys.readouterr().err
    assert words in text
    assert text.count("\n") == text.count("export: ") == 1


def test_a_model_without_a_tokenizer(
    talker: LanguageModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talker._tokenizer = None
    assert main(["export", "any", str(tmp_path / "out")]) == 2
    assert "this model came without a tokenizer" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="whoever may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert main(["export", "any", str(tmp_path)]) == 2
    assert "nothing can be written" in capsys.readouterr().err


@pytest.mark.usefixtures("talker")
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("webgrad.web.language.write_export", full)
    assert main(["export", "any", str(tmp_path / "out"), "--context", "8"]) == 2
    assert "could not be written: No space left on device" in capsys.readouterr().err


def test_a_page_that_paints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = wg.diffusion.UNet2DConfig(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        block_out_channels=(4, 8),
        down_block_types=("DownBlock2D",) * 2,
        up_block_types=("UpBlock2D",) * 2,
        layers_per_block=1,
        norm_num_groups=4,
        num_class_embeds=3,
    )
    pipe = wg.diffusion.Unconditional(
        wg.diffusion.UNet2D(config), wg.diffusion.FlowMatching(), ["cat", "dog"]
    )
    model = str(wg.diffusion.save(pipe, tmp_path / "pets"))
    out = str(tmp_path / "out")
    assert main(["export", model, out, "--count", "2", "--size", "8", "--size", "8x16", "--json"]) == 0
    printed = capsys.readouterr()
    assert "planning pictures: 2 of 8 × 8, 2 of 16 × 8; 2 classes" in printed.err
    assert json.loads(printed.out)["kind"] == "painting"
    facts = facts_of(tmp_path / "out")
    assert (facts["title"], facts["guidance"], facts["noClass"]) == ("pets", 2.0, 2)
    assert facts["classes"] == [[0, "cat"], [1, "dog"]]
    assert [each["name"] for each in facts["layouts"]] == ["2_8_8", "2_16_8"]
    assert facts["draws"]["step"] == []  # this sampler adds none
    assert len(facts["draws"]["begin"]) == 4
    plan = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    assert set(plan["state"]) == {"x_2_8_8", "before_2_8_8", "x_2_16_8", "before_2_16_8"}
    for more, message in (
        (["--size", "1x2x3"], "must be a side's length, or WIDTHxHEIGHT"),
        (["--guidance", "nan"], "must be a number from 1 to 1000"),
        (["--guidance", "0.5"], "must be a number from 1 to 1000"),
        (["--context", "4"], "is a diffusion model"),
        (["--labels", "a.txt"], "are for ONNX models"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["export", model, out, *more])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["export", "model.onnx", out, "--count", "2"])
    assert "are for diffusion models, and model.onnx is none" in capsys.readouterr().err
