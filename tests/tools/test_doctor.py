"""The doctor's processes: one that dies or hangs costs the probe it was at; the others run all the same."""

from __future__ import annotations

import queue
from types import SimpleNamespace

import pytest

from tests.limits import HANG
from webgrad.errors import DeviceError
from webgrad.tools import doctor

# Plays the process that probes: what it does depends on where it is told to begin.
PROGRAM = """
import json, os, sys, time
request = json.loads(sys.argv[1])
def say(**words): print(json.dumps(words), flush=True)
def finding(name): say(finding={"name": name, "text": "fine"})
def probe(at): say(probe=at, name=f"probe {at}", group="Numbers")
"""
TROUBLE = (
    PROGRAM
    + """
sys.stderr.write("noise\\nthe driver said this")
if request["first"] == 0:
    probe(0); finding("probe 0"); probe(1); sys.stderr.flush(); os.abort()
if request["first"] == 2:
    probe(2); time.sleep(1000)
probe(3); finding("probe 3"); say(done=True)
"""
)


class Lines(queue.Queue[str]):
    """Waits for a line as long as it takes, but not behind the probe that hangs: no clock is asked."""

    last = ""

    def get(self, block: bool = True, timeout: float | None = None) -> str:
        if '"probe": 2' in self.last:
            raise queue.Empty
        self.last = super().get(timeout=HANG)
        return self.last


def test_a_process_that_dies_and_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", TROUBLE)
    monkeypatch.setattr(doctor, "queue", SimpleNamespace(Queue=Lines, Empty=queue.Empty))
    found = list(doctor.examine("webgpu:0"))
    assert [(each.name, each.verdict) for each in found] == [
        ("probe 0", "ok"),
        ("probe 1", "problem"),
        ("probe 2", "problem"),
        ("probe 3", "ok"),
    ]
    died, hung = found[1:3]
    assert died.text.startswith("the process ")
    assert died.text.endswith("; the driver said this")
    assert hung.text == "no answer within 60 seconds, so the process was ended"
    assert died.group == hung.group == "Numbers"
    assert "update it" in died.advice


def test_after_some_losses_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", PROGRAM + "probe(request['first']); sys.exit(7)")
    found = list(doctor.examine("webgpu:0"))
    assert [each.name for each in found] == ["probe 0", "probe 1", "probe 2", "giving up"]
    assert found[0].text == "the process ended with code 7"
    assert all(each.verdict == "problem" and each.advice for each in found)


def test_drivers_that_cannot_even_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", PROGRAM + "os._exit(3)")
    devices, [found] = doctor.listed()
    assert devices == ("cpu",)
    assert (found.text, found.verdict) == ("the process ended with code 3", "problem")


def test_what_the_user_can_mend_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", PROGRAM + "say(refused=f'no {request[\"list\"]} here')")
    with pytest.raises(DeviceError, match="no webgpu:9 here"):
        doctor.listed("webgpu:9")
