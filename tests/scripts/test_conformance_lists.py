"""Lists of tests that are skipped or expected to fail: every line needs a test and a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import LISTS
from scripts.conformance_lists import Expectation, ListError, for_device, matches, read_list, stale

TEST = "array_api_tests/test_dlpack.py::test_from_dlpack"


def listed(folder: Path, *lines: str) -> list[Expectation]:
    path = folder / "skips.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_list(path)


def test_a_line_is_devices_test_and_reason(tmp_path: Path) -> None:
    case = f"{TEST}[x is -0 -> +0]"
    found = listed(
        tmp_path, "# a remark", "", f"cpu | {TEST} | it needs a GPU", f"both | {case} | zeros are one"
    )
    assert found == [
        Expectation("cpu", TEST, "it needs a GPU"),
        Expectation("both", case, "zeros are one"),
    ]
    assert for_device(found, "cpu") == [TEST, case]
    assert for_device(found, "webgpu:0") == for_device(found, "webgpu") == [case]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (TEST, "is not `devices | test | reason`"),
        (f"cpu | {TEST}", "is not `devices"),
        (f"cpu | {TEST} | ", "has no reason that says why"),
        (f"cpu | {TEST} | flaky", "has no reason that says why, only 'flaky'"),
        (f"gpu | {TEST} | it is not there", "devices are cpu, webgpu, both, not 'gpu'"),
        ("both | array_api_tests/test_dlpack.py | all of it fails", "names no test"),
        ("both | test_dlpack | all of it fails", "names no test"),
    ],
)
def test_other_lines_are_errors(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ListError, match=r"skips\.txt, line 2: ") as raised:
        listed(tmp_path, "# a remark", line)
    assert message in str(raised.value)


def test_a_listed_test_is_found_with_its_cases() -> None:
    nodes = [f"{TEST}[a]", f"{TEST}[b]"]
    assert matches(nodes[0], TEST)
    assert not matches(nodes[0], nodes[1])
    assert not matches(f"{TEST}_more", TEST)
    assert stale([TEST, nodes[1], f"{TEST}[c]"], nodes) == [f"{TEST}[c]"]


def test_our_lists_can_be_read() -> None:
    for name in ("skips.txt", "xfails.txt"):
        expectations = read_list(LISTS / name)
        tests = [(each.devices, each.test) for each in expectations]
        assert len(set(tests)) == len(tests)
