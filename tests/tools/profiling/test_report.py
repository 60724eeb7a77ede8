"""The report of a profile: what it says, that users' words stay words, and that it works in a browser."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools.profiling.profile_data import encoder_profile, long_profile
from webgrad.tools.profiling.report import headline, page

pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only

from tests.browser import Browser, Page

HOSTILE = "</script><img src=x onerror=alert(1)><!--<script> '\"&amp; \u2028 @DATA@ \ud800 $& \\u003c"


def embedded(text: str) -> Any:
    """The data in a page."""
    found = re.search(r'<script type="application/json" id="data">([^<]*)</script>', text)
    assert found is not None
    return json.loads(found[1])


def kernel(name: str, seconds: float, count: int = 2, line: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "device": "webgpu:0",
        "count": count,
        "seconds": seconds,
        "share": 0.5,
        "line": line,
    }


STAGES = [
    {"name": "python", "seconds": 0.5, "count": 3, "what": "the program's own code"},
    {"name": "lower", "seconds": 0.3, "count": 1, "what": "groups become loops."},
    {"name": "wait", "seconds": 0.9, "count": 1, "what": ""},
]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "Nothing was computed."),
        ({"seconds": 1.0}, "Nothing was computed."),
        (
            {"seconds": 1.0, "kernels": [kernel("a", 0.004, 1), kernel("b", 0.4, 1, "x.py:3")]},
            "40 % of the time is one kernel, b, launched once, at x.py:3.",
        ),
        (
            {"seconds": 2.0, "kernels": [kernel("a", 1.0, 2000), kernel("b", 0.4)], "stages": STAGES},
            "50 % of the time is one kernel, a, launched 2,000 times; 1 other kernel takes 20 %.",
        ),
        (
            {"seconds": 2.0, "kernels": [kernel("a", 0.01)], "stages": STAGES},
            "25 % of the time is the program's own Python code, not webgrad's.",
        ),
        (
            {"seconds": 2.0, "kernels": [kernel("a", 0.01)], "stages": STAGES[1:]},
            "15 % of the time the host is in one stage, lower (groups become loops).",
        ),
        (
            {
                "seconds": 2.0,
                "kernels": [kernel("a", 0.9)],
                "stages": [*STAGES, {"name": "kernels", "seconds": 1.0}],
            },
            "45 % of the time is one kernel, a, launched 2 times.",
        ),
        ({"seconds": 2.0, "stages": STAGES}, "45 % of the time the host is in one stage, wait."),
    ],
)
def test_headline(data: dict[str, Any], sentence: str) -> None:
    assert headline(data) == sentence


def test_users_words_are_no_markup() -> None:
    data = encoder_profile(1) | {"title": HOSTILE, "notes": [HOSTILE], "kernels": [kernel(HOSTILE, 1.0)]}
    text = page(data)
    text.encode("utf-8")
    assert (text.count("<script"), text.count("</script"), text.count("<!--")) == (2, 2, 0)
    assert "<img" not in text
    back = embedded(text)
    assert (back["title"], back["kernels"][0]["name"]) == (HOSTILE, HOSTILE)


def test_numbers_that_json_does_not_have_become_null() -> None:
    back = embedded(page({"explained": math.nan, "kernels": [kernel("a", math.inf)]}))
    assert (back["explained"], back["kernels"][0]["seconds"]) == (None, None)


def test_spans_become_rows_in_the_order_of_time() -> None:
    spans = [
        ("gpu", "b", 5.0, 1.0, 0, 1),
        ("host", "a", 3, 4.126, 1, None),
        (0, "a", 1, 9, 0, 2),
        (1, "b", 2, 1, 0, 0),
    ]
    back = embedded(page({"tracks": ["host", "gpu"], "spans": [*spans, ("new", "b", 0, 1, 0, -1)]}))
    assert (back["tracks"], back["names"], back["end"]) == (["host", "gpu", "new"], ["b", "a"], 10)
    assert back["rows"] == [
        {"track": 0, "depth": 0, "start": [1], "duration": [9], "name": [1], "index": [2]},
        {"track": 0, "depth": 1, "start": [3], "duration": [4.13], "name": [1], "index": [-1]},
        {"track": 1, "depth": 0, "start": [2, 5.0], "duration": [1, 1.0], "name": [0, 0], "index": [0, 1]},
        {"track": 2, "depth": 0, "start": [0], "duration": [1], "name": [0], "index": [-1]},
    ]


def shown(
    browser: Browser, folder: Path, data: dict[str, Any], width: int = 1280, *, dark: bool = False
) -> Page:
    file = folder / "report.html"
    file.write_text(page(data), encoding="utf-8")
    opened = browser.page(width, 900, dark=dark)
    opened.open(file)
    opened.settle()
    return opened


def colours(opened: Page, canvas: str) -> int:
    """How many colours a canvas has; an empty one has one."""
    count = opened.evaluate(
        f"""(() => {{ const canvas = byId("{canvas}"); return new Set(new Uint32Array(canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size }})()"""
    )
    return int(count)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_opens_without_an_error(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    opened = shown(browser, tmp_path, encoder_profile(), width, dark=dark)
    picture = opened.screenshot(tmp_path / "report.png")
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 40_000
    assert colours(opened, "timeline") > 10
    assert colours(opened, "memory") > 4
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert opened.evaluate("document.querySelectorAll('#rows tr').length") == 9
    assert (opened.errors(), opened.requests()) == ([], [])


def texts(opened: Page, selector: str) -> list[str]:
    found = opened.evaluate(f"[...document.querySelectorAll('{selector}')].map((each) => each.textContent)")
    return list(found)


def test_nothing_and_hostile_words(browser: Browser, tmp_path: Path) -> None:
    assert shown(browser, tmp_path, {}).errors() == []
    words = HOSTILE.replace("\ud800", "")
    data = encoder_profile(1) | {"title": words, "notes": [words], "flush_causes": {words: 2}}
    data["kernels"][0] |= {"name": words, "line": words, "ops": [words], "device": words}
    opened = shown(browser, tmp_path, data)
    opened.evaluate("selectKernel(0)")
    opened.settle()
    assert texts(opened, "h1, #notes li, tr.picked .name, tr.picked .ops") == [words] * 4
    assert opened.evaluate("document.images.length") == 0
    assert (opened.errors(), opened.requests()) == ([], [])


BOX = "(({left, top, width}) => [left, top, width])(byId('timeline').getBoundingClientRect())"


def view(opened: Page) -> tuple[float, float]:
    opened.settle()
    begin, end = opened.evaluate("[timeline.from / timeline.end, timeline.to / timeline.end]")
    return begin, end


def test_moving_the_timeline(browser: Browser, tmp_path: Path) -> None:
    opened = shown(browser, tmp_path, encoder_profile())
    opened.evaluate("byId('timeline').focus(); byId('timeline').scrollIntoView()")
    opened.press("+")
    assert view(opened) == pytest.approx((0.25, 0.75))
    opened.press("ArrowRight")
    assert view(opened) == pytest.approx((0.375, 0.875))
    opened.press("ArrowLeft")
    opened.press("-")
    assert view(opened) == pytest.approx((0, 1))
    opened.evaluate("document.querySelector('[data-move=in]').click()")
    assert view(opened) == pytest.approx((0.25, 0.75))
    left, top, width = opened.evaluate(BOX)
    opened.mouse("mousePressed", left + 0.5 * width, top + 60)
    opened.mouse("mouseMoved", left + 0.7 * width, top + 60, buttons=1)
    opened.mouse("mouseReleased", left + 0.7 * width, top + 60)
    assert view(opened) == pytest.approx((0.15, 0.65))
    opened.press("0")
    assert view(opened) == (0, 1)
    opened.mouse("mouseWheel", left + 0.25 * width, top + 60, deltaX=0, deltaY=-500)
    begin, end = view(opened)
    assert end - begin == pytest.approx(math.exp(-1))
    assert begin + 0.25 * (end - begin) == pytest.approx(0.25)
    assert opened.errors() == []


def test_two_fingers(browser: Browser, tmp_path: Path) -> None:
    opened = shown(browser, tmp_path, encoder_profile(1), 400)
    opened.evaluate("byId('timeline').scrollIntoView()")
    left, top, width = opened.evaluate(BOX)

    def fingers(kind: str, *shares: float) -> None:
        points = [
            {"x": left + share * width, "y": top + 60, "id": place} for place, share in enumerate(shares)
        ]
        opened.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    fingers("touchStart", 0.25)
    fingers("touchStart", 0.25, 0.5)
    fingers("touchMove", 0.25, 0.75)
    fingers("touchEnd")
    begin, end = view(opened)
    assert (begin, end) == pytest.approx((0.125, 0.625), abs=0.02)
    assert opened.errors() == []


def test_pointing_at_a_kernel_and_picking_it(browser: Browser, tmp_path: Path) -> None:
    data = encoder_profile()
    opened = shown(browser, tmp_path, data)
    opened.evaluate("byId('timeline').scrollIntoView()")
    kernel_span = next(span for span in data["spans"] if span[0] != "host" and span[5] == 0)
    middle = kernel_span[2] + kernel_span[3] / 2
    left, top = opened.evaluate(
        f"""(() => {{ const box = byId("timeline").getBoundingClientRect(), row = timeline.rows.at(-1);
        return [box.left + place({middle}, box.width), box.top + row.top + 5]; }})()"""
    )
    opened.mouse("mouseMoved", left, top)
    opened.settle()
    tip = opened.evaluate("byId('tip').hidden ? '' : byId('tip').innerText")
    assert data["kernels"][0]["name"] in tip
    assert data["kernels"][0]["line"] in tip
    before = colours(opened, "timeline")
    opened.mouse("mousePressed", left, top)
    opened.mouse("mouseReleased", left, top)
    opened.settle()
    assert (
        opened.evaluate("document.querySelector('tr.picked .name').textContent") == data["kernels"][0]["name"]
    )
    assert opened.evaluate("byId('selection').innerText").startswith(data["kernels"][0]["name"])
    assert colours(opened, "timeline") < before
    opened.evaluate("byId('timeline').focus()")
    opened.press("Escape")
    opened.settle()
    assert opened.evaluate("document.querySelector('tr.picked') === null && byId('selection').hidden")
    assert opened.errors() == []


def test_sorting_and_filtering(browser: Browser, tmp_path: Path) -> None:
    data = encoder_profile()
    opened = shown(browser, tmp_path, data)
    assert texts(opened, "#rows .name") == [each["name"] for each in data["kernels"]]
    opened.evaluate("document.querySelector('#heads button').click()")
    assert texts(opened, "#rows .name") == sorted(each["name"] for each in data["kernels"])
    assert opened.evaluate("[...byId('heads').children].map((each) => each.ariaSort)")[0] == "ascending"
    opened.evaluate("byId('filter').focus()")
    opened.call("Input.insertText", text="GELU matmul")
    assert texts(opened, "#rows .name") == ["matmul_tile_384x1536_f32_gelu"]
    assert opened.evaluate("byId('counted').textContent") == "1 of 9 kernels"
    many = {"seconds": 1.0, "kernels": [kernel(f"k{number}", 0.001) for number in range(300)]}
    opened = shown(browser, tmp_path, many)
    assert opened.evaluate("document.querySelectorAll('#rows tr').length") == 200
    opened.evaluate("byId('more').click()")
    assert opened.evaluate("[document.querySelectorAll('#rows tr').length, byId('more').hidden]") == [
        300,
        True,
    ]
    assert opened.errors() == []


def test_many_spans_are_gathered(browser: Browser, tmp_path: Path) -> None:
    data = long_profile(200_000)
    assert len(data["spans"]) >= 200_000
    opened = shown(browser, tmp_path, data)
    assert 2_000 < opened.evaluate("timeline.drawn") < 30_000
    least = opened.evaluate(
        """Math.min(...Array.from({ length: 10 }, () => { const before = performance.now();
        drawTimeline(); drawMemory(); return performance.now() - before; }))"""
    )
    assert least < 100  # about 9 ms here; a box for every span takes far longer
    first = data["spans"][5000]
    opened.evaluate(f"look({first[2]}, {first[2] + 300})")
    opened.settle()
    assert 5 < opened.evaluate("timeline.drawn") < 500
    assert opened.errors() == []


def test_paper_is_light(browser: Browser, tmp_path: Path) -> None:
    opened = shown(browser, tmp_path, encoder_profile(1), dark=True)
    corner = """[...byId("memory").getContext("2d").getImageData(0, 0, 1, 1).data,
        getComputedStyle(document.documentElement).backgroundColor]"""
    dark = opened.evaluate(corner)
    opened.show(dark=True, media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    light = opened.evaluate(corner)
    assert light[-1] == "rgb(255, 255, 255)"
    assert dark != light
    assert opened.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert opened.errors() == []
