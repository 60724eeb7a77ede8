"""apt's source entries: both formats, and the backports entry derived from them."""

from __future__ import annotations

import pytest

from scripts.sources import Source, backports, has_suite, parse_deb822, parse_one_line, to_deb822

DEB822 = """\
# The main archive
Types: deb
# a remark in the middle
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""
LIST = """\
# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian-security bookworm-security main
deb [arch=amd64,arm64 signed-by=/keys/one.gpg trusted=yes] http://mirror.example/debian bookworm main # remark
deb cdrom:[disc]/ bookworm main
"""
EXPECTED = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


def test_backports_from_a_deb822_file() -> None:
    entry = backports(parse_deb822(DEB822), "bookworm")
    assert entry is not None
    assert to_deb822(entry) == EXPECTED


def test_backports_from_a_one_line_file() -> None:
    entry = backports(parse_one_line(LIST), "bookworm")
    assert entry is not None
    assert to_deb822(entry) == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
        "Architectures: amd64 arm64\nSigned-By: /keys/one.gpg\nTrusted: yes\n"
    )


def test_what_is_derived_is_read_back_as_it_was() -> None:
    [entry] = parse_deb822(EXPECTED)
    assert to_deb822(entry) == EXPECTED


def test_only_enabled_binary_entries_are_read() -> None:
    assert [source.suites for source in parse_deb822(DEB822)] == [
        ("bookworm", "bookworm-updates"),
        ("bookworm-security",),
    ]


def test_a_key_written_in_the_file_stays_whole() -> None:
    key = "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n -----END PGP PUBLIC KEY BLOCK-----\n"
    text = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n" + key
    [source] = parse_deb822(text)
    assert to_deb822(source) == text


def test_the_distributions_own_archive_is_preferred() -> None:
    other = Source(
        ("http://vendor.example/apt",), ("bookworm",), ("main",), {"Signed-By": "/keys/vendor.gpg"}
    )
    own = Source(("http://mirror.example/debian/",), ("bookworm",), ("main",), {})
    entry = backports([other, own], "bookworm")
    assert entry is not None
    assert entry.uris == own.uris


@pytest.mark.parametrize(
    "sources",
    [
        [],
        [Source(("http://mirror.example/debian",), ("trixie",), ("main",), {})],
        [Source(("http://mirror.example/debian-security",), ("bookworm-security",), ("main",), {})],
        [Source(("http://vendor.example/apt",), ("bookworm",), ("stable",), {})],
    ],
)
def test_no_main_archive_no_backports(sources: list[Source]) -> None:
    assert backports(sources, "bookworm") is None


def test_a_suite_that_is_there_is_seen() -> None:
    assert has_suite(parse_deb822(EXPECTED), "bookworm-backports")
    assert not has_suite(parse_deb822(DEB822), "bookworm-backports")


@pytest.mark.parametrize(
    "text", ["", "\n\n\n", "Types deb", ":\n: :", " continued", "deb\ndeb [\ndeb [a=] x"]
)
def test_broken_texts_give_no_entries(text: str) -> None:
    assert list(parse_deb822(text)) == []
    assert list(parse_one_line(text)) == []
