"""The pages of exports in a browser, on mocks of a model: what they show, say of failures, and ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.page_folders import FACTS, mock_files, served
from webgrad.errors import ArgumentError
from webgrad.web.page import page_files

pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only

from tests.browser import Browser, Page

HOSTILE = "</script><img src=x onerror=alert(1)><!--"
PASSAGES = (
    "The cat slept in the warm sun.\n\n"
    "Tensors are arrays of numbers. A matrix is a tensor of two axes.\n\n"
    "zzzz qqqq zzzz qqqq"
)


def texts(page: Page, selector: str) -> list[str]:
    return list(page.evaluate(f"[...document.querySelectorAll('{selector}')].map((each) => each.innerText)"))


def click(page: Page, selector: str) -> None:
    page.evaluate(f"document.querySelector('{selector}').click()")


def write(page: Page, selector: str, words: str) -> None:
    page.evaluate(f"document.querySelector('{selector}').focus()")
    page.call("Input.insertText", text=words)


def calls(page: Page) -> list[Any]:
    """What the model was asked for since the last time: [name, inputs]."""
    told = page.evaluate(
        """JSON.stringify(mock.calls.splice(0), (name, value) =>
        ArrayBuffer.isView(value) ? Array.from(value) : value)"""
    )
    return list(json.loads(told))


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An address for each kind of page."""
    folder = tmp_path_factory.mktemp("pages")
    for kind in FACTS:
        (folder / kind).mkdir()
        for name, content in mock_files(kind).items():
            (folder / kind / name).write_bytes(content)
    with served(folder, {}) as address:
        yield {kind: f"{address}{kind}/" for kind in FACTS}


def opened(browser: Browser, address: str, width: int = 1280, *, dark: bool = False) -> Page:
    page = browser.page(width, 800, dark=dark)
    page.open(address)
    page.wait_for("['ready', 'failed'].includes(document.body.dataset.state)")
    return page


@pytest.mark.parametrize("kind", FACTS)
def test_a_page_opens(browser: Browser, addresses: dict[str, str], kind: str, tmp_path: Path) -> None:
    for width, dark in ((1280, False), (360, True)):
        page = opened(browser, addresses[kind], width, dark=dark)
        page.settle()
        assert page.screenshot(tmp_path / "page.png").startswith(b"\x89PNG")
        assert page.text("h1") == FACTS[kind]["title"]
        assert page.evaluate("document.title") == FACTS[kind]["title"]
        assert page.text("#device") == "SwiftShader · software, subgroups of 4 · no GPU, so slow"
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        assert page.evaluate("document.getElementById('problem').hidden && progress.hidden")
        assert page.errors() == []
        asked = page.requests()
        assert len(asked) > 6
        assert [url for url in asked if not url.startswith(addresses[kind])] == []


def test_progress_names_bytes(browser: Browser, addresses: dict[str, str]) -> None:
    page = browser.page()
    page.open(addresses["chat"] + "?hold=1")
    page.wait_for("globalThis.device.textContent.includes('84')")
    assert page.text("#device") == "Loading weights: 84 of 270 MB"
    assert int(page.evaluate("progress.ariaValueNow || progress.getAttribute('aria-valuenow')")) == 29
    assert page.evaluate("document.getElementById('send').disabled")
    page.evaluate("mock.release()")
    page.wait_for("document.body.dataset.state === 'ready'")
    assert page.errors() == []


@pytest.mark.web
def test_the_theme_is_kept(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["plain"])
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    click(page, "#theme")
    page.open(addresses["search"])
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    page.show(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("localStorage.clear()")


PROBLEMS = {
    "no-webgpu": "This browser has no WebGPU",
    "insecure": "WebGPU needs a secure address",
    "no-adapter": "No GPU was given to this page",
    "no-device": "The GPU could not be opened",
    "lost": "The GPU was lost",
    "out-of-memory": "There is not enough GPU memory",
    "compile": "A kernel was refused",
    "validation": "The browser refused a command",
    "weights": "A weight file is damaged",
    "input": "The model does not take this input",
    "internal": "Something went wrong",
    "unheard-of": "Something went wrong",
}
WORDS = {"no-webgpu": "Chrome and Edge", "insecure": "https", "lost": "still here", "weights": "cut short"}


def test_every_failure_has_its_words(browser: Browser, addresses: dict[str, str]) -> None:
    page = browser.page(360)
    for code, heading in PROBLEMS.items():
        page.open(f"{addresses['plain']}?fail={code}")
        page.wait_for("document.body.dataset.state === 'failed'")
        assert page.text("#problem h2") == heading
        assert WORDS.get(code, "") in page.text("#problem")
        page.evaluate("document.querySelector('#problem details').open = true")
        assert f"the mock says {code}\nits own words" in page.text("#problem pre")
        assert page.evaluate("run.disabled && document.documentElement.scrollWidth === 360")
    page.evaluate("mock.fail = null")
    click(page, "#retry")
    page.wait_for("document.body.dataset.state === 'ready'")
    assert page.evaluate("problem.hidden && !run.disabled && mock.opened === 2")
    assert page.errors() == []


@pytest.mark.web
def test_a_missing_file(browser: Browser, tmp_path: Path) -> None:
    files = mock_files("search")
    del files["tokenizer.json"]
    with served(tmp_path, files) as address:
        page = opened(browser, address)
        assert page.text("#problem h2") == "A file of this page is missing"
        assert "tokenizer.json could not be loaded" in page.evaluate("problem.textContent")


def test_pages_say_what_they_lack() -> None:
    with pytest.raises(
        ArgumentError, match="there is no page of the kind 'cat'; there are plain, chat, search"
    ):
        page_files("cat", {})
    with pytest.raises(ArgumentError, match="the facts of a search page lack inputs, longest, tokenizer"):
        page_files("search", {"functions": []})
    assert b"<title>webgrad</title>" in page_files("plain", {})["index.html"]


def test_a_folder_opened_from_a_disk(browser: Browser, tmp_path: Path) -> None:
    for name, content in mock_files("plain").items():
        (tmp_path / name).write_bytes(content)
    page = browser.page(360)
    page.open(tmp_path / "index.html")
    page.wait_for("document.body.dataset.state === 'failed'")
    assert page.text("#problem h2") == "This page needs a server"
    assert "webgrad serve-static" in page.text("#problem")


# Chat


def say(page: Page, words: str) -> None:
    write(page, "#text", words)
    page.evaluate("form.requestSubmit()")


def answered(page: Page, count: int) -> None:
    page.wait_for(f"document.querySelectorAll('.answer:not(.going)').length === {count}")


def test_an_answer_streams_as_text(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    write(page, "#text", HOSTILE)
    page.press("Enter")
    answered(page, 1)
    assert texts(page, ".user .words") == [HOSTILE]
    assert texts(page, ".answer .words > *") == [
        "Here is some code:",
        "print(1 < 2)",
        "That is <b>all</b> there is.",
    ]
    assert page.evaluate("document.images.length + document.querySelectorAll('.answer b').length") == 0
    assert "tokens/s" in page.text(".answer .under")
    assert "of 400 tokens" in page.text("#figures")
    asked = calls(page)
    assert {name for name, _ in asked} == {"read_32", "sample"}
    numbers = next(inputs for name, inputs in asked if name == "sample")
    assert numbers["token"] == 3
    assert {key: numbers[key] for key in ("temperature", "top_k", "top_p")} == FACTS["chat"]["sampling"]
    assert page.errors() == []


@pytest.mark.web
def test_a_conversation_reads_only_what_is_new(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    click(page, "#greedy")
    say(page, "first question of some length")
    answered(page, 1)
    before = calls(page)
    assert {name for name, _ in before} == {"read_32", "read_8", "greedy"}
    held = max(inputs["position"] for name, inputs in before if name == "greedy")
    say(page, "second")
    answered(page, 2)
    read = [inputs for name, inputs in calls(page) if name.startswith("read")]
    assert (
        30 < read[0]["position"] <= held
    )  # the mock's chat ends a question otherwise than the answer begins
    assert all(len(inputs["ids"]) in (8, 32) for inputs in read)
    click(page, "#new-chat")
    assert texts(page, ".said") == []
    assert page.text("#welcome h2") == "Ask something"


@pytest.mark.web
def test_stopping_and_trying_again(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    page.evaluate("mock.delay = 20")
    click(page, "#examples button")
    page.wait_for("document.querySelector('.answer .words')?.textContent.length > 3")
    assert page.evaluate("send.hidden && !document.getElementById('stop').hidden")
    page.press("Escape")
    answered(page, 1)
    assert page.text(".answer .note") == "Stopped."
    assert page.evaluate("document.querySelector('.answer .words').textContent.length") < 60
    page.evaluate("mock.delay = 0")
    click(page, ".again")
    page.wait_for("document.querySelector('.answer:not(.going) pre') !== null")
    assert len(texts(page, ".said")) == 2
    assert page.errors() == []


@pytest.mark.web
def test_lines_and_a_full_context(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"], 360)
    write(page, "#text", "x" * 350)
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", modifiers=8)
    assert page.evaluate("document.getElementById('text').value.at(-1)") == "\n"
    page.press("Enter")
    answered(page, 1)
    assert "filled the 400 tokens" in page.text(".answer .note")
    assert calls(page)[-1][1]["position"] == 399
    say(page, "y" * 60)
    answered(page, 2)
    assert calls(page) == []
    assert page.evaluate("document.getElementById('text').value") == "y" * 60  # to be sent in a new chat
    click(page, "#new-chat")
    page.evaluate("document.getElementById('text').value = 'a <|end|> b', form.requestSubmit()")
    answered(page, 1)
    assert page.text(".answer .note") == "This cannot be sent: a control token."
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.errors() == []


def test_a_lost_device_keeps_the_conversation(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    say(page, "hello")
    answered(page, 1)
    page.evaluate("mock.delay = 20")
    say(page, "and now")
    page.wait_for("document.querySelectorAll('.answer .words')[1]?.textContent.length > 3")
    assert page.evaluate("said.lastElementChild.ariaBusy") == "true", "words are not read out one by one"
    write(page, "#text", "half a sent")
    page.evaluate("mock.lose()")
    answered(page, 2)
    assert page.text("#problem h2") == "The GPU was lost"
    assert texts(page, ".note") == ["This answer was cut off."]
    page.evaluate("mock.delay = 0; mock.calls.length = 0")
    click(page, "#retry")
    page.wait_for("document.body.dataset.state === 'ready'")
    assert page.evaluate("document.getElementById('text').value") == "half a sent"
    assert texts(page, ".user .words") == ["hello", "and now"]
    assert page.evaluate("document.querySelectorAll('[aria-busy]').length") == 0
    page.evaluate("form.requestSubmit()")
    answered(page, 3)
    assert calls(page)[0][1]["position"] == 0  # the new model holds nothing
    assert page.errors() == []


def test_what_the_old_model_says_late_does_not_end_the_new_one(
    browser: Browser, addresses: dict[str, str]
) -> None:
    page = opened(browser, addresses["chat"])
    page.evaluate("mock.delay = 400")
    say(page, "hello")
    page.evaluate("mock.lose(); mock.delay = 0")
    click(page, "#retry")
    page.wait_for("document.body.dataset.state === 'ready'")
    assert page.evaluate("said.lastElementChild.classList.contains('going')"), "the old one has not answered"
    page.wait_for("!said.lastElementChild.classList.contains('going')")
    assert texts(page, ".note") == ["This answer was cut off."]
    assert page.evaluate("[document.body.dataset.state, problem.hidden]") == ["ready", True]
    assert page.errors() == []


@pytest.mark.web
def test_the_reader_is_left_where_he_scrolled(browser: Browser, addresses: dict[str, str]) -> None:
    page = browser.page(360, 400)
    page.open(addresses["chat"])
    page.wait_for("document.body.dataset.state === 'ready'")
    end = "talk.scrollHeight - talk.scrollTop - talk.clientHeight"
    for count in (1, 2):
        say(page, "one line\n" * 9)
        answered(page, count)
        page.settle()
        assert page.evaluate(end) < 2
    page.evaluate("mock.delay = 10")
    say(page, "again")
    page.wait_for("document.querySelectorAll('.answer .words')[2]?.textContent.length > 3")
    page.evaluate("talk.scrollTop = 20")
    answered(page, 3)
    page.settle()
    assert page.evaluate("talk.scrollTop") == 20
    assert page.evaluate(end) > 100


@pytest.mark.web
def test_without_a_template_text_goes_on(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, mock_files("chat", chat=None)) as address:
        page = opened(browser, address)
        assert page.text("#welcome h2") == "Begin a text"
        assert page.evaluate("system.closest('label').hidden")
        say(page, "Once upon a time ")
        answered(page, 1)
        asked = calls(page)
        assert "".join(map(chr, asked[0][1]["ids"])) == "Once upo"
        assert asked[-1][0] == "sample"


@pytest.mark.web
def test_settings(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"], 360)
    page.evaluate("settings.open = true")
    page.settle()
    left, right = page.evaluate(
        "(({ left, right }) => [left, right])(system.parentElement.parentElement.getBoundingClientRect())"
    )
    assert 0 <= left < right <= 360
    write(page, "#system", "Be brief.")
    page.evaluate("most.value = 5; temperature.value = 1.5; settings.dispatchEvent(new Event('input'))")
    assert page.text("#temperature-told") == "1.50"
    page.press("Escape")
    assert not page.evaluate("settings.open")
    say(page, "hello")
    answered(page, 1)
    asked = calls(page)
    assert len([name for name, _ in asked if name == "sample"]) == 5
    assert asked[-1][1]["temperature"] == 1.5
    start = "".join(map(chr, asked[0][1]["ids"]))
    assert start.startswith("system: Be brief.\nuser: hello")
    assert "Cut off" in page.text(".note")


GENERATE = """import("./generation.js").then(async ({ generate }) => {
  const calls = [], made = [], report = {}, signal = new AbortController();
  let last = 0, waiting = 0, most = 0;
  const run = async ({ token, position }, name) => {
    last = (token < 0 ? last : token) + 1;
    calls.push([name, token, position]);
    const next = last;
    most = Math.max(most, (waiting += 1));
    await new Promise((go) => setTimeout(go, 5));
    waiting -= 1;
    return { token: { data: [next] } };
  };
  const submit = (name, { ids, position, token }) => calls.push([name, ids ? [...ids] : token, position]);
  const model = { run, submit, device: { done: async () => {} } };
  const facts = { context: 40, room: 48, chunks: [8, 4], stopIds: [99], ...FACTS,
                  functions: { read: "read_{size}", greedy: "greedy" } };
  for (const [ids, mostTokens, stopAt] of TEXTS) {
    const stop = new AbortController();
    const ids_made = [];
    for await (const id of generate(model, facts, ids, { mostTokens, report, signal: stop.signal })) {
      ids_made.push(id);
      if (ids_made.length === stopAt) stop.abort();
    }
    made.push([ids_made, report.stoppedBy, calls.splice(0)]);
  }
  return { made, most };
})"""


def generated(page: Page, facts: dict[str, Any], *texts: tuple[list[int], int, int]) -> Any:
    """For each (ids, most tokens, where it is stopped): (ids, why it ended, what was asked)."""
    return page.evaluate(GENERATE.replace("FACTS", json.dumps(facts)).replace("TEXTS", json.dumps(texts)))


@pytest.mark.web
def test_what_generation_asks_for(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    first, longer, other = generated(
        page,
        {},
        (list(range(14)), 3, 0),
        ([*range(14), 14, 15, 16, 50], 1, 0),
        ([0, 1, 2, 7, 98], 9, 0),
    )["made"]
    assert first == [
        [14, 15, 16],
        "length",
        [
            *(["read_8", list(range(8)), 0], ["read_8", [8, 9, 10, 11, 12, 12, 12, 12], 8]),
            *(["greedy", 13, 13], ["greedy", 14, 14], ["greedy", 15, 15]),
        ],
    ]
    assert longer == [[51], "length", [["read_4", [16, 16, 16, 16], 16], ["greedy", 50, 17]]]
    assert other == [[99], "end", [["read_4", [7, 7, 7, 7], 3], ["greedy", 98, 4]]]


@pytest.mark.web
def test_generation_at_the_context_s_end(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    full, stopped, beyond = generated(
        page, {"context": 39, "room": 39}, (list(range(38)), 9, 0), ([*range(30)], 9, 2), ([0] * 40, 9, 0)
    )["made"]
    assert full[:2] == [[38, 39], "context"]
    assert full[2][-4:-2] == [["read_4", [32, 33, 34, 35], 32], ["greedy", 36, 36]]  # no chunk fits there
    assert full[2][-2:] == [["greedy", 37, 37], ["greedy", 38, 38]]
    assert stopped[:2] == [[30, 31], "user"]
    assert beyond == [[], "context", []]


@pytest.mark.web
def test_a_device_that_is_lost_while_a_text_is_read(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    said = page.evaluate(
        """import("./generation.js").then(async ({ generate }) => {
        const lost = () => { throw new Error("lost"); };
        const submits = [() => {}, lost];
        const model = { submit: () => submits.shift()(), device: { done: async () => lost() } };
        const facts = { context: 40, chunks: [4], stopIds: [], functions: { read: "read", greedy: "one" } };
        return generate(model, facts, [...Array(30).keys()]).next().catch((error) => error.message);
        })"""
    )
    page.settle()
    assert said == "lost"
    assert page.errors() == [], "every promise was listened to"


@pytest.mark.web
def test_steps_ahead_of_the_host(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["chat"])
    told = generated(page, {"ahead": 3}, ([1], 5, 0), ([1, 2, 97], 9, 0), (list(range(38)), 9, 0))
    first, ended, full = told["made"]
    assert generated(page, {"ahead": 3}, ([1], 5, 0))["most"] == 3
    assert first == [
        [2, 3, 4, 5, 6],
        "length",
        [["greedy", 1, 0], *(["greedy", -1, position] for position in range(1, 5))],
    ]
    assert ended[:2] == [[98, 99], "end"]
    assert full[:2] == [[38, 39, 40], "context"]
    assert full[2][-1] == ["greedy", -1, 39]


# Search


def test_search_finds_and_reveals(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["search"])
    write(page, "#query", "tensor matrices")
    page.wait_for("empty.innerText === 'Paste a text first.'")
    write(page, "#text", PASSAGES)
    page.wait_for("document.querySelectorAll('#hits li').length === 3")
    hits = texts(page, "#hits li")
    assert "Tensors are arrays" in hits[0]
    assert "zzzz" in hits[2]
    assert texts(page, "#hits mark") == ["Tensors", "tensor"]
    assert page.text("#counted") == "3 passages"
    click(page, "#hits button")
    chosen = page.evaluate(
        "(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))"
        "(document.getElementById('text'))"
    )
    assert chosen == "Tensors are arrays of numbers. A matrix is a tensor of two axes."
    asked = calls(page)
    assert [name for name, _ in asked][:2] == ["embed_64", "embed_16"]
    assert asked[0][1]["lengths"] == [64, 30, 19, 1]
    assert page.errors() == []


@pytest.mark.web
def test_only_new_passages_are_read(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["search"])
    write(page, "#text", PASSAGES)
    page.wait_for("working.textContent.startsWith('3 passages read')")
    calls(page)
    write(page, "#text", "\n\none more")
    page.wait_for("working.textContent.startsWith('1 passage read')")
    assert [inputs["lengths"] for _, inputs in calls(page)] == [[8, 1, 1, 1]]
    page.evaluate("by.value = 'sentence'; by.dispatchEvent(new Event('change'))")
    page.wait_for("counted.textContent === '5 passages'")
    page.evaluate("mock.lose()")
    assert page.text("#problem h2") == "The GPU was lost"
    assert page.evaluate("document.getElementById('text').value").endswith("one more")


@pytest.mark.web
def test_passages(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["search"])
    split = """import('./passages.js').then(({ splitPassages }) =>
        splitPassages(...%s).map(({ text }) => text))"""

    def passages(*values: Any) -> list[str]:
        return list(page.evaluate(split % json.dumps(values)))

    assert passages("") == passages(" \n\n --- \n") == []
    assert passages("a b.\nc d.\n \nE f!") == ["a b.\nc d.", "E f!"]
    assert passages("One two. Three four. Five.", "paragraph", 4) == ["One two. Three four.", "Five."]
    assert passages("One two. Three four.", "sentence", 80) == ["One two.", "Three four."]
    assert passages("a b c d e", "sentence", 2) == ["a b", "c d", "e"]
    counted = page.evaluate(
        """import('./passages.js').then(({ splitPassages }) =>
        ["A sentence is here. ".repeat(50000), "x".repeat(1e7), "\\n".repeat(1e6)].map((text) =>
        splitPassages(text).length))"""
    )
    assert counted == [2500, 1, 0], "one long paragraph is no matter of minutes"
    odd = "Äpfel — und 🍏?  Ja.\r\n\r\n日本語です。次の文。"
    assert "".join(passages(odd, "sentence", 80)).replace(" ", "") == odd.replace(" ", "").replace("\r\n", "")


# Classifier


def draw(page: Page, *shares: float) -> None:
    box = "(({ left, top, width }) => [left, top, width])(pad.getBoundingClientRect())"
    left, top, width = page.evaluate(box)
    for place, share in enumerate(shares):
        kind = "mousePressed" if place == 0 else "mouseMoved"
        page.mouse(kind, left + share * width, top + share * width, buttons=1)
    page.mouse("mouseReleased", left + shares[-1] * width, top + shares[-1] * width)


def test_drawing_is_classified(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["classifier"])
    draw(page, 0.25, 0.5, 0.75)
    page.wait_for("document.querySelectorAll('#bars li').length === 5")
    assert texts(page, "#bars li")[0].startswith("Dress\n")
    assert page.text("#best").startswith("Dress · ")
    page.settle()
    name, inputs = calls(page)[-1]
    seen = inputs["x"]
    assert (name, len(seen)) == ("run", 784)
    assert (seen[0], max(seen), seen[14 * 28 + 14]) == (0, 1, 1)  # white on black: inverted
    assert 20 < sum(value > 0.5 for value in seen) < 120
    click(page, "#clear")
    assert texts(page, "#bars li") == []
    assert page.errors() == []


@pytest.mark.web
def test_pictures_and_samples(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["classifier"])
    click(page, "#samples button")
    page.wait_for("document.querySelectorAll('#bars li').length === 5")
    sample = calls(page)[-1][1]["x"]
    assert sample == pytest.approx([sample[0]] * 784, abs=1e-6)
    page.evaluate(
        """(async () => {
        const made = new OffscreenCanvas(40, 20), context = made.getContext("2d");
        context.fillStyle = "#ff0000";
        context.fillRect(0, 0, 20, 20);
        const files = new DataTransfer();
        files.items.add(new File([await made.convertToBlob()], "red.png", { type: "image/png" }));
        document.dispatchEvent(new DragEvent("drop", { dataTransfer: files, cancelable: true }));
        })()"""
    )
    page.wait_for("mock.calls.length > 0")
    seen = calls(page)[-1][1]["x"]
    assert seen[0] == pytest.approx(
        1 - 0.299, abs=1e-3
    )  # red looks dark; the other half is transparent, so white
    assert seen[27] == pytest.approx(0, abs=1e-6)
    assert page.errors() == []


@pytest.mark.web
def test_inputs_of_colour_pictures(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["classifier"])
    made = page.evaluate(
        """import("./pictures.js").then(({ shrunk, seenBy, inputOf, softmax }) => {
        const facts = { height: 1, width: 2, channels: 3, mean: [0.5, 0, 0], std: [0.5, 1, 2] };
        const rgba = Uint8ClampedArray.of(255, 0, 0, 255, 255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 0, 0);
        const seen = seenBy(facts, shrunk(rgba, 4, 1, 2, 1), false);
        const last = inputOf({ ...facts, layout: "channels-last" }, seen);
        return [[...seen], [...inputOf(facts, seen)], [...last], softmax([0, Math.log(3)])]; })"""
    )
    seen, first, last, shares = made
    assert seen == [1, 0, 0, 0.5, 1, 0.5]
    assert first == [1, 0, 0, 1, 0, 0.25]
    assert last == [1, 0, 0, 0, 1, 0.25]
    assert shares == pytest.approx([0.25, 0.75])


# Any function


def test_a_function_runs(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["plain"])
    page.evaluate("document.querySelector('[data-input=x]').value = '[[1, 2, 3], [4, 5, 6.5]]'")
    assert page.evaluate("document.querySelector('[data-input=rate]').value") == "0.25"
    assert page.text("#fields summary") == "2 more with values of their own"
    assert page.evaluate("document.querySelector('details [data-input=number_2]').value") == "0.1"
    page.evaluate("document.querySelector('[data-input=rate]').value = '2'")
    click(page, "#run")
    page.wait_for("document.querySelector('.result') !== null")
    assert texts(page, ".result td") == ["2", "4", "6", "8", "10", "13"]
    assert "2 × 3" in page.text(".result dl")
    assert page.text("#time").endswith("ms")
    ((name, inputs),) = calls(page)
    assert (name, inputs) == (
        "scale",
        {"x": [1, 2, 3, 4, 5, 6.5], "rate": 2},
    )  # draw0 is the runner's to draw, and number_2 has a value
    page.evaluate("functions.value = 'large'; functions.dispatchEvent(new Event('change'))")
    page.evaluate(
        "[...document.querySelectorAll('button')].find((each) => each.innerText === 'Ones').click()"
    )
    click(page, "#run")
    page.wait_for("document.querySelector('.result canvas') !== null")
    assert "Ones: 10,000 numbers" in page.text("#fields")
    click(page, "#reset")
    page.wait_for("time.innerText === 'State is as it was at first'")
    assert "0.8415" in page.text(".result dl")
    assert page.errors() == []


MISTAKES = {
    "1, 2": "x has 2 numbers, and 6 are wanted (2 × 3).",
    "[1, 2": "x is no list: write numbers with commas between them, or [[1, 2], [3, 4]].",
    "1 2 3 4 5 six": "number 6 of x is no number.",
}


def test_mistakes_are_named(browser: Browser, addresses: dict[str, str]) -> None:
    page = opened(browser, addresses["plain"])
    for written, words in MISTAKES.items():
        page.evaluate(f"document.querySelector('[data-input=x]').value = {json.dumps(written)}")
        click(page, "#run")
        assert page.text("#wrong") == words
    assert calls(page) == []
    page.evaluate("document.querySelector('[data-input=x]').value = '1 2 3 4 5 nan'; mock.fail = 'run'")
    click(page, "#run")
    page.wait_for("wrong.innerText.includes('the mock says')")
    assert page.evaluate("problem.hidden")  # the user can mend it here
    assert page.errors() == []


@pytest.mark.web
def test_files_of_numbers(browser: Browser, addresses: dict[str, str]) -> None:
    import io

    import numpy as np

    page = opened(browser, addresses["plain"])
    x = np.arange(6).reshape(2, 3)

    def taken(content: bytes) -> str:
        page.evaluate(
            f"""(() => {{ const files = new DataTransfer();
            files.items.add(new File([Uint8Array.from({list(content)})], "x.npy"));
            const pick = document.querySelector("#file-x");
            pick.files = files.files;
            pick.dispatchEvent(new Event("change")); }})()"""
        )
        page.wait_for("wrong.innerText || document.querySelector('[data-input=x]').value !== 'waiting'")
        value = page.evaluate("wrong.innerText || document.querySelector('[data-input=x]').value")
        page.evaluate("document.querySelector('[data-input=x]').value = 'waiting'; wrong.textContent = ''")
        return str(value)

    def npy(array: Any) -> bytes:
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    page.evaluate("document.querySelector('[data-input=x]').value = 'waiting'")
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool"):
        given = x.astype(dtype)
        assert taken(npy(given)) == "\n".join(", ".join(str(int(each)) for each in row) for row in given)
    assert taken(x.astype("<f4").tobytes()) == "0, 1, 2\n3, 4, 5"
    assert "column order" in taken(npy(np.asfortranarray(x)))
    assert "which is not read" in taken(npy(x.astype("complex64")))
    assert "has 3 numbers, and 6 are wanted" in taken(npy(x[0]))
    assert "no .npy file" in taken(b"123")
    assert page.errors() == []
