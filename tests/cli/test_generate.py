"""`webgrad generate`: a text goes on, from the command line or a pipe, as text or JSON."""

from __future__ import annotations

import json

import pytest

from tests.cli.fakes import FakeModel
from tests.cli.test_chat import piped
from webgrad.cli import main


def test_a_text_goes_on(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "any", "once upon", "--seed", "3", "--max-tokens", "9"]) == 0
    printed = capsys.readouterr()
    assert printed.out == " you said once upon\n"  # the space before the first word is the model's
    assert printed.err == "prefill 2 tokens, 4/s · decode 1 tokens, 4/s · cpu\n"
    assert (model.settings[0]["seed"], model.settings[0]["max_tokens"]) == (3, 9)


@pytest.mark.usefixtures("model")
def test_a_prompt_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "any", "--prompt", "once upon", "--quiet"]) == 0
    assert capsys.readouterr().out == " you said once upon\n"


@pytest.mark.usefixtures("model")
def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    piped(monkeypatch, b"a\nb\n")
    assert main(["generate", "any", "-", "--json"]) == 0
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert (record["text"], record["ids"], printed.err) == (" you said a\nb", [0], "")
    assert record["report"]["stopped_by"] == "end"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("arguments", [[], ["any"], ["any", ""], ["any", "one", "--prompt", "two"]])
def test_mistakes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", *arguments])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
