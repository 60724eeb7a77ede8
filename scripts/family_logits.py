"""Write tests/models/families.json: what transformers makes of the random models, for tests without it.

`python -m scripts.family_logits`, in the environment of `make test-transformers`. In: the models of
scripts/random_models.py. Out: for each family a sample of its logits (of BERT: its vectors) for the text IDS.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from scripts.random_models import FAMILIES, IDS, write_folder
from scripts.system import ROOT

__all__ = ["FIXTURE", "POSITIONS", "STRIDE", "reference", "sample"]

FIXTURE = ROOT / "tests" / "models" / "families.json"
POSITIONS = (0, 11, 39)  # the first, one behind every window, the last
STRIDE = 8  # every so many-th column is kept
Array = np.ndarray[Any, Any]


def reference(folder: Path) -> Array:
    """The logits of the text IDS (length, vocabulary), or a BERT's vectors, by transformers in float32."""
    import torch
    import transformers

    kind = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    source = transformers.AutoModel if kind == "bert" else transformers.AutoModelForCausalLM
    model, found = source.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    wrong = [*found["unexpected_keys"], *found["mismatched_keys"]]
    wrong += [name for name in found["missing_keys"] if not name.startswith("pooler.")]
    if wrong:
        raise ValueError(f"transformers does not find these weights of {folder} fitting: {wrong}")
    with torch.no_grad():
        output = model.eval()(torch.tensor([IDS]))
    result = output.last_hidden_state if kind == "bert" else output.logits
    array: Array = result[0].numpy()
    return array


def sample(values: Array) -> Array:
    """What is kept of an array (length, columns)."""
    return values[list(POSITIONS), ::STRIDE]


def main() -> int:
    """Write the file."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, family in FAMILIES.items():
            write_folder(family, Path(folder) / name)
            kept = sample(reference(Path(folder) / name))
            found[name] = [[round(float(each), 5) for each in row] for row in kept]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items())
    FIXTURE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
