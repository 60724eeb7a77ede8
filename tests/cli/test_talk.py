"""A conversation's commands: what they change, and what they say about mistakes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import webgrad as wg
from tests.cli.fakes import FakeModel
from webgrad.cli.options import SETTINGS
from webgrad.cli.talk import ALIASES, COMMANDS, Conversation, is_command
from webgrad.cli.terminal import Output


class Talk(Conversation):
    """A conversation whose screen is a text."""

    def __init__(self, context: int = 1000) -> None:
        self.screen = io.StringIO()
        self.fake = FakeModel(context)
        settings = {each.name: each.default for each in SETTINGS.values()} | {"stop": ()}
        super().__init__(self.fake, "fake", settings, Output(self.screen))

    def heard(self) -> str:
        """What was written since the last time."""
        text = self.screen.getvalue()
        self.screen.seek(0)
        self.screen.truncate()
        return text


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.mark.parametrize("text", ["/help", "/set temperature 1", "/", "/?", "/nonsense", "/quit "])
def test_a_word_after_a_slash_is_a_command(text: str) -> None:
    assert is_command(text)


@pytest.mark.parametrize("text", ["/usr/bin is what?", "hello /help", "/help\nand more", "// comment"])
def test_other_texts_are_not(text: str) -> None:
    assert not is_command(text)


def test_help_names_every_command(talk: Talk) -> None:
    assert talk.command("/help")
    text = talk.heard()
    assert [name for name in COMMANDS if f"\n  {name} " not in "\n" + text] == []
    assert [name for name, meant in ALIASES.items() if meant not in COMMANDS] == []


@pytest.mark.parametrize("word", ["/quit", "/exit", "/bye", "/q"])
def test_leaving(word: str, talk: Talk) -> None:
    assert not talk.command(word)


def test_a_command_that_is_not_there(talk: Talk) -> None:
    assert talk.command("/rest")
    assert talk.heard() == "there is no /rest; did you mean /reset?\n"
    assert talk.command("/xyzzy")
    assert talk.heard() == "there is no /xyzzy; see /help\n"


def test_settings(talk: Talk) -> None:
    talk.command("/set temperature 0.25")
    talk.command("/set top-k=5")
    talk.command("/set seed 7")
    talk.command("/set seed none")
    assert (talk.settings["temperature"], talk.settings["top_k"], talk.settings["seed"]) == (0.25, 5, None)
    assert talk.heard() == "temperature 0.25\ntop_k 5\nseed 7\nseed none\n"
    talk.command("/set temperature hot")
    assert talk.heard() == "'hot' is not allowed; it must be a number from 0 to 100\n"
    talk.command("/set temprature 1")
    assert talk.heard() == "there is no setting temprature; did you mean temperature?\n"
    assert talk.settings["temperature"] == 0.25
    talk.command("/set")
    assert talk.heard().count("\n") >= len(SETTINGS)
    talk.say("hello")
    assert talk.fake.settings[0]["temperature"] == 0.25


def test_system_reset_and_retry(talk: Talk) -> None:
    talk.command("/retry")
    assert talk.heard() == "nothing was asked yet\n"
    talk.command("/system Be brief.")
    talk.say("one")
    talk.say("two")
    talk.command("/retry")
    assert [each[-1]["content"] for each in talk.fake.asked] == ["one", "two", "two"]
    assert talk.fake.asked[1] == talk.fake.asked[2]
    assert talk.fake.asked[2][0] == {"role": "system", "content": "Be brief."}
    assert len(talk.turns) == 4
    talk.command("/reset")
    assert talk.turns == []
    talk.command("/system none")
    talk.say("three")
    assert talk.fake.asked[3] == [{"role": "user", "content": "three"}]


def test_stats(talk: Talk) -> None:
    talk.command("/stats")
    assert talk.heard() == "fake on cpu, 0 of 1000 tokens in use\n"
    talk.say("hello")
    talk.heard()
    talk.command("/stats")
    assert talk.heard() == (
        "fake on cpu, 4 of 1000 tokens in use\n1 answer: 1 tokens read at 2/s, 1 written at 4/s\n"
    )


def test_a_turn_that_fails_leaves_no_trace(talk: Talk) -> None:
    talk.say("one")
    kept = list(talk.turns)
    with pytest.raises(ValueError, match="cannot"):
        talk.say("fail")
    assert talk.turns == kept


def test_a_turn_that_does_not_fit_forgets_nothing(talk: Talk) -> None:
    talk.fake.context = 80
    talk.say("one two three")
    kept = list(talk.turns)
    talk.heard()
    with pytest.raises(wg.ArgumentError, match="does not fit the context of 80"):
        talk.say("word " * 90)
    assert talk.heard() == ""
    assert talk.turns == kept


def test_what_is_forgotten_is_told_with_the_answer(talk: Talk) -> None:
    talk.fake.context = 80
    talk.say("one two three")
    talk.heard()
    talk.say("four " * 15)
    assert talk.heard().endswith("the context is full: the first 2 messages are forgotten\n")
    assert len(talk.turns) == 2


def test_an_answer_anew_stays_where_older_turns_are_forgotten(talk: Talk) -> None:
    talk.say("one")
    talk.say("two three four five six")
    talk.fake.context = 70
    talk.command("/retry")
    assert [each["content"] for each in talk.turns] == [
        "two three four five six",
        "you said two three four five six",
    ]


def test_a_conversation_is_kept_and_loaded(talk: Talk, tmp_path: Path) -> None:
    talk.system = "Be brief."
    talk.say("héllo")
    path = tmp_path / "a folder" / "talk.json"
    talk.heard()
    talk.command(f"/save {path}")
    assert "there is no folder" in talk.heard()
    path.parent.mkdir()
    talk.command(f"/save {path}")
    assert talk.heard() == f"2 messages in {path}\n"
    other = Talk()
    other.command(f"/load {path}")
    assert (other.turns, other.system) == (talk.turns, "Be brief.")


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        "[" * 100_000,
        '{"system": 1, "messages": []}',
        '{"system": "", "messages": [1]}',
        '{"system": "", "messages": [{"role": "user", "content": 1}]}',
        '{"system": "", "messages": [{"role": "user", "content": "a"}]}',
        '{"system": "", "messages": [{"role": "tool", "content": "a"}, {"role": "user", "content": "a"}]}',
    ],
)
def test_files_that_are_no_conversation(text: str, talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(text, encoding="utf-8")
    talk.say("one")
    kept = list(talk.turns)
    talk.heard()
    talk.command(f"/load {path}")
    assert talk.heard() == f"{path} is not a conversation that /save wrote\n"
    assert talk.turns == kept


def test_files_that_are_not_there(talk: Talk, tmp_path: Path) -> None:
    talk.command(f"/load {tmp_path / 'none.json'}")
    assert talk.heard() == f"{tmp_path / 'none.json'}: No such file or directory\n"
    talk.command("/load")
    talk.command("/save")
    assert talk.heard() == "say what: /load FILE.json\nsay where to: /save FILE.json\n"


def test_a_saved_conversation_is_plain_json(talk: Talk, tmp_path: Path) -> None:
    talk.say("one")
    talk.command(f"/save {tmp_path / 'talk.json'}")
    assert json.loads((tmp_path / "talk.json").read_text(encoding="utf-8")) == {
        "model": "fake",
        "system": "",
        "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "you said one"},
        ],
    }
