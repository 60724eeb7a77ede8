"""Stop strings, however the text is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import webgrad as wg
from webgrad.models.stop_strings import Stopper, checked_stops


@given(
    text=st.text("abc", max_size=30),
    stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 30), max_size=8),
)
def test_the_text_ends_where_the_first_stop_begins(text: str, stops: list[str], cuts: list[int]) -> None:
    stopper, shown, places = Stopper(stops), "", [0, *sorted(cuts), len(text)]
    for start, end in pairwise(places):
        shown += stopper.push(text[start:end])
        if stopper.found is not None:
            break
    shown += stopper.finish()
    if stopper.found is None:
        assert shown == text
        assert not any(each in text for each in stops)
    else:
        # Which stop is seen first depends on the pieces; what is shown holds none and goes on with one.
        assert text.startswith(shown + stopper.found)
        assert not any(each in shown for each in stops)


def test_nothing_is_shown_that_may_begin_a_stop() -> None:
    stopper = Stopper(["\n\nUser:"])
    assert stopper.push("Yes.\n") == "Yes."
    assert stopper.push("\nUs") == ""
    assert stopper.push("e that.") == "\n\nUse that."
    assert stopper.push("\n\nUser: and") == ""
    assert stopper.found == "\n\nUser:"
    assert stopper.push("more") == ""


def test_a_stop_that_is_no_text() -> None:
    with pytest.raises(wg.DTypeError, match="stop is a text, or a list of texts, not 3"):
        checked_stops(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("stop", [[""], [3], ["a", None]])
def test_stops_that_are_none(stop: list[str]) -> None:
    with pytest.raises(wg.ArgumentError, match="stop is a text or several"):
        checked_stops(stop)
