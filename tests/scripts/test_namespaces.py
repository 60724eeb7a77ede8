"""What other libraries have and webgrad has not: the pages say it as it is."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from scripts import namespaces
from scripts.system import ROOT
from webgrad.porting import rows


@pytest.mark.parametrize("name", namespaces.PARTS)
def test_pages_are_what_the_script_writes(name: str) -> None:
    page = ROOT / name
    assert page.read_text("utf-8") == namespaces.pages()[page], "run python -m scripts.namespaces"


def test_every_absent_name_of_numpys_has_something_instead() -> None:
    told = {
        name for row in rows() if (row.source, row.scope) == ("numpy", "wg") for name in row.names.split()
    }
    assert sorted(set(namespaces.absent_of_numpy()) - told) == []


def test_stored_names_are_names() -> None:
    numpys, torchs = namespaces.names_of("numpy"), namespaces.names_of("torch")
    assert len(numpys["numpy"]) > 300
    assert {"sum", "interp", "concatenate"} < {*numpys["numpy"]}
    assert "float32" not in numpys["numpy"]
    assert [name for name in numpys["numpy.fft"] if not hasattr(np.fft, name)] == []
    assert {"sum", "float32", "no_grad", "Generator"} < {*torchs["torch"]}
    assert {"view", "is_leaf", "masked_fill_"} < {*torchs["torch.Tensor"]}
    assert len(torchs["torch"]) > 500
    assert [name for names in torchs.values() for name in names if name.startswith("_")] == []


def test_what_is_there_is_not_absent() -> None:
    absent = namespaces.absent_of_torch()
    assert "sum" not in absent["torch"]
    assert "sparse_coo_tensor" in absent["torch"]
    assert namespaces._here("torch.no_such_module") is None
    assert not any(hasattr(wg, name) for name in namespaces.absent_of_numpy() if "." not in name)
