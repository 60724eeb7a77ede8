"""Hand-tuned kernels: templates (*.pwgsl), and the choice among them by device, dtype and sizes.

In: what is to be computed. Out: `Launch`es that the runtime can run. `choose` is the way in; README.md
says how templates are written.
"""

from __future__ import annotations

from webgrad.kernels.launch import Launch

__all__ = ["Launch"]
