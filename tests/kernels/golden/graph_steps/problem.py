"""Inputs and reference of graph_steps, in NumPy."""
import numpy as np

from graphs import edge_deviation


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    return {"weight": rng.normal(0, edge_deviation(), sizes["EDGES"]).astype(np.float16)}


def reference(state, offsets, columns, weight, order, segment, bias, table, sizes):
    state = state.astype(np.float64)
    rows = np.repeat(np.arange(sizes["NODES"]), np.diff(offsets))
    for step in range(sizes["STEPS"]):
        sums = np.zeros(sizes["NODES"])
        np.add.at(sums, rows, state[columns] * weight.astype(np.float64))
        state = state + 0.125 * (table[segment, step % 4] * sums + bias[segment])
    return {"state": state.astype(np.float32), "visits": np.array([sizes["NODES"]], np.int32)}
