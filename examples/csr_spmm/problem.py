"""A sparse matrix whose rows are as uneven as those of a web graph: a few have thousands of entries, many have none.

With NumPy alone, so that it runs on every machine; there is no baseline then, and speedups are over the start variant.
"""
import numpy as np


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    rows, columns, count = sizes["ROWS"], sizes["COLS"], sizes["NNZ"]
    popularity = rng.pareto(1.8, rows) + 1e-3
    lengths = rng.multinomial(count, popularity / popularity.sum())
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # Sorted within each row, as CSR has them.
    picked = rng.integers(0, columns, count)
    row_of = np.repeat(np.arange(rows), lengths)
    picked = picked[np.lexsort((picked, row_of))]
    return {
        "offsets": offsets.astype(np.int32),
        "columns": picked.astype(np.int32),
        "values": rng.uniform(-1, 1, count).astype(np.float32),
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
