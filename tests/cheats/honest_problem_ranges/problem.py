"""Segments whose lengths differ as those of web pages, with NumPy alone."""
import numpy as np


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    weights = rng.pareto(1.5, sizes["SEGMENTS"]) + 1e-3
    lengths = rng.multinomial(sizes["N"], weights / weights.sum())
    return {
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        "values": rng.standard_normal(sizes["N"]).astype(np.float32),
    }


def reference(offsets, values):
    ends = np.concatenate([[0.0], np.cumsum(values.astype(np.float64))])
    return {"out": ends[offsets[1:]] - ends[offsets[:-1]]}
