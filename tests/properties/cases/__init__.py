"""Cases for each kind of op: nodes over every layout, beside what NumPy makes of the same arrays.

In: a row of the table, a dtype, a device. Out: `Case`s. `BUILDERS` has an entry for each kind of op, or one
op; a row whose kind is not there fails the tests. Drivers compile slowly, so on a GPU layouts, shapes and
attributes come in all combinations for `THOROUGH` dtypes of ops that stand for others (`STANDS_FOR`), each
layout once for the other dtypes of these, and two layouts in turn for each dtype of the other ops. Maps
among these other ops have the same operands, and come together: kernels then have many results.
"""

from tests.properties.cases.maker import STANDS_FOR, THOROUGH, Maker, follows
from tests.properties.cases.table import BUILDERS, cases_of

__all__ = ["BUILDERS", "STANDS_FOR", "THOROUGH", "Maker", "cases_of", "follows"]
