"""NumPy's names that webgrad has not: what there is instead, or why there is nothing."""

from __future__ import annotations

__all__ = ["INSTEAD"]

INSTEAD: tuple[tuple[str, str], ...] = (
    ("shape ndim size", "`x.shape`, `x.ndim`, `x.size`"),
    ("iscomplexobj isrealobj isscalar iterable typename", "`wg.is_complex(x)`, `x.dtype`, `x.ndim`"),
    ("issubdtype common_type min_scalar_type mintypecode isfortran", "`wg.isdtype`, `wg.result_type`"),
    ("require asfortranarray asarray_chkfinite", "`wg.asarray`: a computed tensor is in C order"),
    ("asmatrix bmat block", "`wg.concat` of rows: `wg.concat([wg.concat([a, b], 1), wg.concat([c, d], 1)])`"),
    ("fromfunction", "`f(*wg.indices(shape))`"),
    (
        "frombuffer fromiter fromstring fromregex",
        "`wg.asarray` of a buffer or of a list; NumPy's own, and `wg.asarray` of what it gives",
    ),
    (
        "load save savez savez_compressed fromfile loadtxt savetxt genfromtxt",
        "`wg.io.load(path)`, `wg.io.save(path, tensors)`: `.npy`, `.npz`, `.safetensors`, `.gguf`",
    ),
    ("frompyfunc apply_over_axes piecewise", "the expression itself, `wg.where`, `wg.select`: it is fused"),
    ("place", "`x[mask] = values`, `wg.putmask`"),
    ("resize", "`wg.tile`, `x[:n]`, `x.reshape`"),
    ("rollaxis", "`wg.moveaxis`"),
    (
        "diag_indices_from tril_indices_from triu_indices_from mask_indices",
        "`wg.diag_indices(n)`, `wg.tril_indices(n)`",
    ),
    ("einsum_path", "`wg.einsum`, which chooses the order of products itself"),
    ("i0", "`wg.special.i0`"),
    ("kaiser", "`wg.special.i0` of what the window is made of; `wg.hamming`, `wg.blackman`"),
    ("histogram2d histogram_bin_edges", "`wg.histogramdd`, `wg.histogram`, which give their edges"),
    ("poly polydiv polysub roots", "`wg.polyadd(a, -b)`; `wg.linalg.eigvals` of the companion matrix"),
    ("real_if_close sort_complex", "`wg.real(x)`; complex numbers have no order"),
    ("spacing", "`wg.nextafter(x, wg.inf) - x`"),
    ("bitwise_count", "`wg.unpackbits(x).sum()` of bytes"),
    (
        "array2string array_repr array_str base_repr binary_repr format_float_positional "
        "format_float_scientific set_printoptions get_printoptions printoptions",
        "tensors are printed as NumPy's arrays, by NumPy's options",
    ),
    (
        "may_share_memory shares_memory",
        "what a view is, is in [views](concepts.md#views); a copy is `x.clone()`",
    ),
    ("nested_iters", "`for row in x` waits for each row: whole arrays"),
    (
        "busday_count busday_offset is_busday datetime_as_string datetime_data isnat",
        "dates and strings are not there",
    ),
    (
        "geterr seterr geterrcall seterrcall getbufsize setbufsize",
        "nothing warns: a division by zero is infinite, or NaN; of integers 0",
    ),
    ("get_include info show_config show_runtime test", "`webgrad info`, `webgrad doctor`"),
)
