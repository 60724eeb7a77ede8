"""Links as the site has them."""

from __future__ import annotations

import pytest

from scripts.docs_hooks import for_the_site, titles_of
from scripts.system import ROOT


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/nn.md", "[optim.md](optim.md#steps)", "[optim.md](optim.md#steps)"),
        ("docs/nn.md", "[here](#there) ![x](pictures/x.svg)", "[here](#there) ![x](pictures/x.svg)"),
        ("docs/nn.md", "[x](https://example.org/x)", "[x](https://example.org/x)"),
        ("docs/nn.md", "[the table](../webgrad/errors.py)", "the table (`webgrad/errors.py`)"),
        ("docs/nn.md", "[skips.txt](../conformance/skips.txt)", "`conformance/skips.txt`"),
        ("docs/nn.md", "[how](../CONTRIBUTING.md)", "[how](contributing.md)"),
        ("docs/reference/io.md", "[`wg.exp`](elements.md#exp)", "[`wg.exp`](elements.md#exp)"),
        ("docs/reference/io.md", "[Ops](../ops.md)", "[Ops](../ops.md)"),
        ("CONTRIBUTING.md", "[a](docs/nn.md#x), [b](README.md)", "[a](nn.md#x), [b](index.md)"),
        ("CONTRIBUTING.md", "[benchmarks](benchmarks/README.md)", "benchmarks (`benchmarks/README.md`)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(page: str, text: str, expected: str) -> None:
    assert for_the_site(text, page) == expected


def test_a_link_that_is_called_by_its_file_gets_the_title_of_the_page() -> None:
    titles = titles_of(ROOT)
    text = "[nn.md](nn.md), [x](nn.md)"
    assert for_the_site(text, "docs/optim.md", titles) == "[Networks](nn.md), [x](nn.md)"
    assert for_the_site("[docs/nn.md](docs/nn.md#a)", "CONTRIBUTING.md", titles) == "[Networks](nn.md#a)"
