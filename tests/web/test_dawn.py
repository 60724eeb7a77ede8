"""JavaScript in node with Dawn: values go in and come out, shaders run, and errors keep their words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.web.dawn import NULL, JavaScriptError, run_module, run_text
from tests.web.test_browsers import COMPUTE

pytestmark = pytest.mark.usefixtures("dawn")


def test_values_files_and_errors(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"é": 1}', encoding="utf-8")
    (tmp_path / "other.js").write_text("const two = 2;\nexport { two };\n", encoding="utf-8")
    module = tmp_path / "module.mjs"
    module.write_text(
        """import { two } from "./other.js";
        async function main({ numbers, name }) {
          console.log("not in the answer");
          const data = await (await fetch(new URL("./data.json?1", import.meta.url))).json();
          const missing = await fetch(new URL("./missing.json", import.meta.url));
          const adapter = await navigator.gpu.requestAdapter();
          const doubled = numbers.map((each) => each * two);
          return { doubled, name, data, status: missing.status, adapter: adapter !== null };
        }
        function fail() { throw Object.assign(new RangeError("too far"), { code: "far" }); }
        export { main, fail };
        """,
        encoding="utf-8",
    )
    numbers = np.array([0.5, -1, 3], np.float32)
    answer = run_module(module, {"numbers": numbers, "name": "ü"}, options=NULL)
    np.testing.assert_array_equal(answer.pop("doubled"), numbers * 2, strict=True)
    assert answer == {"name": "ü", "data": {"é": 1}, "status": 404, "adapter": True}
    with pytest.raises(JavaScriptError, match="RangeError: too far") as caught:
        run_module(module, function="fail", options=NULL)
    assert (caught.value.code, "module.mjs" in caught.value.stack) == ("far", True)
    with pytest.raises(JavaScriptError, match="exports no function nowhere"):
        run_module(module, function="nowhere", options=NULL)


@pytest.mark.web
@pytest.mark.gpu
def test_shaders_run() -> None:
    text = f"async function main() {{ return {COMPUTE}; }}\nexport {{ main }};\n"
    assert run_text(text) == [index * index for index in range(64)]
