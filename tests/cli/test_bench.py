"""`webgrad bench`: a row for each device, and prompts of which nothing is known before."""

from __future__ import annotations

import json

import pytest

from tests.cli.fakes import FakeEmbedder, FakeModel
from webgrad.cli import main, protocols


def test_a_line_for_each_device(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--runs", "2", "--tokens", "3", "--prompt-tokens", "50"]
    assert main(["bench", "any", "--device", "cpu", "--device", "cpu", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(each.startswith("cpu: loaded in") and " · decode " in each for each in lines)
    assert len(model.asked) == 2 * 3


def test_json(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "any", "--device", "cpu", "--runs", "2", "--tokens", "3", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["model"], record["prompt_tokens"], len(record["devices"])) == ("any", 128, 1)
    row = record["devices"][0]
    assert 0 < row["decode_tokens_per_second"] < 1000  # a token takes at least a millisecond
    prompts = [json.loads(each[0]["content"]) for each in model.asked]
    assert [len(each) for each in prompts] == [128] * 3
    assert len({each[0] for each in prompts}) == 3


def test_a_model_that_embeds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(protocols, "load", lambda *arguments: FakeEmbedder())
    assert main(["bench", "any", "--device", "cpu", "--runs", "1"]) == 0
    assert "texts/s" in capsys.readouterr().out


def test_lengths_that_do_not_fit(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "cpu", "--prompt-tokens", "990"]) == 2
    assert "990 + 32 tokens do not fit" in capsys.readouterr().err
    assert model.asked == []


def test_a_device_that_is_not_there(model: FakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--device", "cpu", "--device", "webgpu:99"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert model.asked == []
