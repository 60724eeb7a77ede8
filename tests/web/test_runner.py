"""runner.js in each browser: a plan's outputs, and errors that come late, by the compilers of both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pages import DrivenPage
from tests.runtime.runner_plans import EXPECTED, LOAD, SCALE, served_chain

pytestmark = pytest.mark.web

ERRORS = """(async () => {
  const { openDevice } = await import("/runner.js");
  const heard = [];
  const device = await openDevice({ onLost: ({ code }) => heard.push(code) });
  const told = (promise) => promise.then(() => "nothing", ({ code, message }) => `${code}: ${message}`);
  device.createPipeline("fn main( {", "main", "rw", "bad kernel");
  const compile = await told(device.ready());
  const buffer = device.createBuffer(16);
  const pipeline = device.createPipeline(SCALE, "main", "rw");
  const group = device.createGroup("rw", [buffer, 0, 64, buffer, 0, 64]);
  device.run(device.prepare(new Int32Array([pipeline, group, 1, 1, 1])), new Uint8Array(256));
  const validation = await told(device.read(buffer, 0, 16));
  const after = await told(device.read(buffer, 0, 16));
  device.gpu.destroy();
  return { compile, validation, after, lost: await told(device.read(buffer, 0, 16)), heard };
})()"""


def test_a_plan_over_http(web_page: DrivenPage) -> None:
    with served_chain() as server:
        web_page.open(f"{server.url}/page.html")
        assert web_page.evaluate(LOAD)["y"] == EXPECTED


def test_errors_that_come_late(web_page: DrivenPage) -> None:
    with served_chain() as server:
        web_page.open(f"{server.url}/page.html")
        told: dict[str, Any] = web_page.evaluate(ERRORS.replace("SCALE", json.dumps(SCALE)))
    assert told["compile"].startswith('compile: The GPU\'s compiler refused "bad kernel"')
    assert told["validation"].startswith("validation: The GPU refused an operation")
    assert told["after"] == "nothing", "an error is told once"
    assert told["lost"].startswith("lost: The GPU was lost")
    assert told["heard"] == ["lost"]
