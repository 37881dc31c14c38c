"""A sparse matrix whose rows are as uneven as those of a web graph: a few have thousands of entries, many have none.

The smallest size is a real graph: who was a friend of whom in a karate club, from W. W. Zachary, "An information flow model for
conflict and fission in small groups", Journal of Anthropological Research 33 (1977): 34 members, 78 friendships, each in both
directions. The larger ones are drawn.

With NumPy alone, so that it runs on every machine; there is no baseline then, and speedups are over the start variant.
"""
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CLUB = np.load(HERE / "club_offsets.npy"), np.load(HERE / "club_columns.npy")


def matrix(rows, columns, count, rng):
    """Offsets and columns, sorted within each row, as CSR has them."""
    if (rows, columns, count) == (34, 34, 156):
        return CLUB
    popularity = rng.pareto(1.8, rows) + 1e-3
    lengths = rng.multinomial(count, popularity / popularity.sum())
    picked = rng.integers(0, columns, count)
    row_of = np.repeat(np.arange(rows), lengths)
    return np.concatenate([[0], np.cumsum(lengths)]), picked[np.lexsort((picked, row_of))]


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    offsets, columns = matrix(sizes["ROWS"], sizes["COLS"], sizes["NNZ"], rng)
    lengths = np.diff(offsets)
    return {
        "offsets": offsets.astype(np.int32),
        "columns": columns.astype(np.int32),
        # As graph networks scale them: the sums of long rows are no larger than those of short ones.
        "values": (rng.uniform(-1, 1, sizes["NNZ"]) / np.sqrt(np.repeat(lengths, lengths))).astype(np.float32),
    }


def reference(offsets, columns, values, dense):
    rows, n = len(offsets) - 1, dense.shape[1]
    out = np.zeros((rows, n))
    dense, values = dense.astype(np.float64), values.astype(np.float64)
    for start in range(0, rows, 4096):  # in parts: the products of all entries take gigabytes
        first, last = offsets[start], offsets[min(start + 4096, rows)]
        if first == last:
            continue
        products = values[first:last, None] * dense[columns[first:last]]
        row_of = np.repeat(np.arange(rows)[start : start + 4096], np.diff(offsets[start : start + 4097]))
        filled, begins = np.unique(row_of, return_index=True)
        out[filled] = np.add.reduceat(products, begins, axis=0)
    return {"out": out}
