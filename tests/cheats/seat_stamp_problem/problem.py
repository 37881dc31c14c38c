"""Pair sums, with NumPy alone."""
import numpy as np


def inputs(sizes, seed):
    return {"x": np.random.default_rng(seed).standard_normal(sizes["N"]).astype(np.float32)}


def reference(x):
    x = x.astype(np.float64)
    return {"out": (1 / (1 + (x[:, None] - x[None, :]) ** 2)).sum(axis=1)}
