"""`webgrad chat` without a terminal: one prompt, lines of a pipe, JSON, mistakes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import webgrad as wg
from tests.cli.fakes import FakeEmbedder, FakeModel
from webgrad.cli import main, protocols

ROOT = Path(__file__).parents[2]


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_one_prompt(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--prompt", "hello", "--system", "Be brief.", "--temperature", "0"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "you said hello\n"
    assert printed.err == "prefill 3 tokens, 6/s · decode 1 tokens, 4/s · cpu\n"
    assert model.asked == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]]
    assert model.settings == [
        {
            "max_tokens": 512,
            "temperature": 0.0,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.05,
            "repetition_penalty": 1.0,
            "seed": None,
            "stop": (),
        }
    ]


def test_quiet_leaves_only_the_answer(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "any:name", "--first", "hello", "--quiet", "--stop", "x", "--stop", "y"]) == 0
    assert capsys.readouterr() == ("you said hello\n", "")
    assert model.settings[0]["stop"] == ("x", "y")


@pytest.mark.usefixtures("model")
def test_a_first_question_comes_with_the_device_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--first", "hello", "--device", "cpu"]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"webgrad {wg.__version__} on cpu (")
    assert second.startswith("prefill 1 tokens")


def test_every_line_of_a_pipe_is_a_turn(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, b"one\n\n/quit\nb\xff")
    assert main(["chat", "--quiet"]) == 0
    assert capsys.readouterr().out == "you said one\nyou said /quit\nyou said b\N{REPLACEMENT CHARACTER}\n"
    assert [len(each) for each in model.asked] == [1, 3, 5]
    assert model.asked[1][:2] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "you said one"},
    ]


def test_json_is_a_line_for_every_answer(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, b"one\ntwo\n")
    assert main(["chat", "--json"]) == 0
    printed = capsys.readouterr()
    first, second = map(json.loads, printed.out.splitlines())
    assert (first["text"], first["ids"], second["text"]) == ("you said one", [0], "you said two")
    assert first["report"]["decode_speed"] == 4.0
    assert printed.err == ""


def test_a_prompt_from_a_pipe(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, "two\nlines é\n".encode())
    assert main(["chat", "--prompt", "-", "--quiet"]) == 0
    assert capsys.readouterr().out == "you said two\nlines é\n"


@pytest.mark.usefixtures("model")
def test_an_answer_that_was_cut_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--prompt", "count", "--max-tokens", "2"]) == 0
    assert capsys.readouterr().err.endswith("· cpu · cut at max_tokens\n")


@pytest.mark.usefixtures("model")
def test_what_cannot_be_answered_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--prompt", "fail"]) == 2
    assert capsys.readouterr() == ("", "webgrad chat: this cannot be answered\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--temperature", "hot"],
            "argument --temperature: 'hot' is not allowed; it must be a number from 0",
        ),
        (["--temperature", "nan"], "'nan' is not allowed"),
        (["--max-tokens", "0"], "'0' is not allowed; it must be an integer from 1"),
        (["--context", "-1"], "'-1' is not allowed; it must be an integer from 1"),
        (["--seed", "1.5"], "'1.5' is not allowed; it must be an integer from 0 to 9223372036854775807"),
        (["--repetition-penalty", "0"], "'0' is not allowed; it must be above 0 and at most 1000"),
        (["--top-p", "0"], "'0' is not allowed; it must be above 0 and at most 1"),
        (["--min-p", "1"], "'1' is not allowed; it must be from 0 to below 1"),
        (["--prompt", " "], "--prompt has no words"),
        (["--prompt", "a", "--first", "b"], "not allowed with"),
        (["--loud"], "unrecognized arguments: --loud"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], words: str, model: FakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["chat", *arguments])
    text = capsys.readouterr().err
    assert caught.value.code == 2
    assert words in text
    assert text.startswith("webgrad chat: ")
    assert text.count("\n") == 1
    assert model.asked == []


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--device", "webgpu:99", "--prompt", "hello"]) == 2
    text = capsys.readouterr().err
    assert text.startswith("webgrad chat: webgpu:99 was asked for")
    assert text.endswith("cpu.\n")
    assert text.count("\n") == 1


def test_models_of_the_other_kind(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", "one", "text"]) == 2
    assert "one does not embed texts: it writes; try: webgrad chat one" in capsys.readouterr().err
    monkeypatch.setattr(protocols, "load", lambda *arguments: FakeEmbedder())
    assert main(["chat", "two", "--prompt", "text"]) == 2
    assert "two does not write: it embeds texts; try: webgrad embed two TEXT" in capsys.readouterr().err


def test_a_model_without_a_chat_template(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    model.tokenizer.has_chat = False
    assert main(["chat", "base", "--prompt", "text"]) == 2
    assert "base has no chat template" in capsys.readouterr().err


def test_the_hint_names_the_model_as_it_was_given(
    model: FakeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    model.tokenizer.has_chat = False
    assert main(["chat", "some where/base.gguf", "--prompt", "text"]) == 2
    assert "try: webgrad generate 'some where/base.gguf' TEXT" in capsys.readouterr().err


LONG = b"one\n" + b"word " * 90 + b"\ntwo\n"


def test_a_line_that_is_too_long_does_not_lose_the_later_ones(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.context = 80
    piped(monkeypatch, LONG)
    assert main(["chat", "--quiet"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "you said one\nyou said two\n"
    assert printed.err == "webgrad chat: a text of 90 tokens does not fit the context of 80\n"
    assert [each["content"] for each in model.asked[-1]] == ["one", "you said one", "two"]


def test_a_line_that_is_too_long_in_json(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.context = 80
    piped(monkeypatch, LONG)
    assert main(["chat", "--json"]) == 2
    printed = capsys.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [each.get("text") for each in rows] == ["you said one", None, "you said two"]
    assert rows[1] == {"error": "a text of 90 tokens does not fit the context of 80"}
    assert printed.err == ""


def test_a_full_context_forgets_the_oldest_turns(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.context = 80
    piped(monkeypatch, b"a b c\nd e f\ng h i\n")
    assert main(["chat"]) == 0
    assert [len(each) for each in model.asked] == [1, 3, 3]
    assert "the context is full: the first 2 messages are forgotten" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
def test_a_reader_that_has_seen_enough() -> None:
    command = f"'{sys.executable}' -m tests.cli.fakes chat --prompt count --quiet | head -c 3"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 1", "")


def test_any_encoding() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.fakes", "chat", "--prompt", "é – 日本"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "you said ? - ??\n"
    assert done.returncode == 0


def test_the_device_is_opened_before_anything_is_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wg.models, "load", None, raising=False)
    with pytest.raises(wg.NoAdapterError):
        protocols.load("smollm2:135m", "webgpu:99")


def test_missing_packages_are_told_of_before_anything_is_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "PACKAGES", ("json", "no_such_package"))
    monkeypatch.setattr(wg.models, "load", lambda *arguments, **options: pytest.fail("it went on"))
    with pytest.raises(wg.ArgumentError, match=r'need the package no_such_package, .*"webgrad\[lm\]"'):
        protocols.load("smollm2:135m", "cpu")
