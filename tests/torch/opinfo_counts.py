"""Write tests/torch/counts.json anew: `python -m tests.torch.opinfo_counts`, where torch is installed."""

from __future__ import annotations

import json
from typing import Any

from tests.torch.moduleinfo import MODULES, counterpart, examined_module
from tests.torch.opinfo import DTYPES, OPS, examined, function
from tests.torch.report import COUNTED, FLOATS, MOST, MOST_OF_MODULES


def main() -> None:
    """Count what is compared; print what is wrong."""
    found: dict[str, dict[str, list[int]]] = {"functions": {}, "modules": {}}

    def note(kind: str, name: str, tally: Any) -> None:
        print("\n".join([name, *tally.wrong]), flush=True)
        if tally.compared:
            found[kind][name] = [tally.compared, tally.gradients]

    for name in OPS:
        if function(name):
            note("functions", name, examined(name, MOST, DTYPES))
    for name in MODULES:
        if counterpart(name):
            note("modules", name, examined_module(name, MOST_OF_MODULES, FLOATS))
    text = json.dumps(found, indent=0).replace("[\n", "[").replace(",\n", ", ").replace("\n]", "]")
    COUNTED.write_text(text.replace('], "', '],\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
