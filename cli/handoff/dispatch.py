"""$TITLE$

$FUNCTION$() takes what the variants' own functions take, and calls the one that the rule picks by the sizes. Written by
Pawl.
"""

import importlib.util
import inspect
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# Iterations, each with bounds on products of sizes: sizes, limit, above it (or at most that). The first whose bounds all
# hold is picked.
RULE = $RULE$
_loaded = {}


def pick(sizes):
    """The iteration whose variant serves these sizes, given by name."""
    for iteration, bounds in RULE:
        if all((math.prod(sizes[name] for name in names) > limit) == above for names, limit, above in bounds):
            return iteration
    return RULE[-1][0]


def variant(iteration):
    """The module of a variant, from its folder."""
    if iteration not in _loaded:
        file = HERE / f"iteration_{iteration}" / "$ID$_winner.py"
        spec = importlib.util.spec_from_file_location(f"$ID$_winner_{iteration}", file)
        _loaded[iteration] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_loaded[iteration])
    return _loaded[iteration]


def $FUNCTION$(*tensors, **named):
    last = variant(RULE[-1][0])
    given = {**inspect.signature(last.$FUNCTION$).bind(*tensors, **named).arguments, **named}
    inputs = {name: given[name] for name, _, role, _ in last.TENSORS if role in ("input", "inout")}
    sizes = last.sizes_of(inputs, {name: given[name] for name in last.SIZES if name in given})
    return variant(pick(dict(zip(last.SIZES, sizes)))).$FUNCTION$(*tensors, **named)
