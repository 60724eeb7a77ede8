"""Random programs of public functions: a few calls on one array, beside NumPy in its dtype and in float64.

In: a seed. Out: `Calls`, which `difference` runs on a device. Shapes and values are `drawing`'s, so that
squares, ties and zeros come often; calls come between two transposes at times.
"""

from tests.properties.calls.drawer import Calls, Drawer
from tests.properties.calls.running import difference
from tests.properties.calls.writer import CALLS, write_calls

__all__ = ["CALLS", "Calls", "Drawer", "difference", "write_calls"]
