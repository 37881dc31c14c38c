"""Pair sums, with NumPy alone."""
import numpy as np


def inputs(sizes, seed):
    return {"x": np.random.default_rng(seed).standard_normal(sizes["N"]).astype(np.float32)}


def reference(x):
    x = x.astype(np.float64)
    return {"out": np.array([(1 / (1 + (value - x) ** 2)).sum() for value in x])}
