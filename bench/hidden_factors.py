#!/usr/bin/env python3
"""Prints Markdown tables from the output of bench/hidden_factors.cu.

  python3 bench/hidden_factors.py hidden_factors.csv

The shift of a level is the mean over repetitions of its log ratio less the base level's in the same repetition. Its
noise is the half-width of a 95 % interval (Student, variance pooled over the levels of a factor and pair), widened for the
number of shifts of which the largest is shown (Bonferroni).
"""

import csv
import math
import statistics
import sys
from collections import defaultdict

# Must agree with Factors() in hidden_factors.cu: the first level is what Pawl does.
BASE = {
    "placement": "mixed",
    "code": "once",
    "before": "fill",
    "calls": "auto",
    "launch": "graph",
    "capture": "random",
    "values": "normal",
    "process": "fresh",
    "idle": "0ms",
    "arena": "after-modules",
    "persisting": "untouched",
}


def read(path):
    """factor -> (kernel, pair) -> level -> repetition -> (mean log ratio, sd between pairs)"""
    factors = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            value = float(row["mean_log_ratio"]), float(row["sd_pairs"])
            pair = f'{row["kernel"]} {row["pair"]}'
            factors[row["factor"]][pair][row["level"]][int(row["repetition"])] = value
    return factors


def percent(log_ratio):
    return 100 * math.expm1(log_ratio)


def student_bound(freedom, tail):
    """x with P(|T| > x) = tail for Student's t: with x = sqrt(freedom) tan(a), the density is that of cos(a)^(freedom - 1)"""

    def area(angle, steps=400):
        width = angle / steps  # Simpson's rule
        weights = [1] + [4 if i % 2 == 1 else 2 for i in range(1, steps)] + [1]
        return sum(w * max(0.0, math.cos(i * width)) ** (freedom - 1) for i, w in enumerate(weights)) * width / 3

    low, high, wanted = 0.0, math.pi / 2, (1 - tail) * area(math.pi / 2)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if area(middle) < wanted else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def differences(levels, base):
    """level -> differences to the base level, one for each repetition that has both"""
    return {
        level: [values[r][0] - levels[base][r][0] for r in sorted(values) if r in levels[base]]
        for level, values in levels.items()
        if level != base
    }


def shifts(pairs, base):
    """(shift, noise, level, pair) of every level other than the base; noise is None without repetitions"""
    found = []
    measured = {
        pair: {level: values for level, values in differences(levels, base).items() if values}
        for pair, levels in pairs.items()
        if base in levels
    }
    count = sum(len(by_level) for by_level in measured.values())
    for pair, by_level in measured.items():
        freedom = sum(len(values) - 1 for values in by_level.values())
        squares = sum((v - statistics.mean(values)) ** 2 for values in by_level.values() for v in values)
        bound = student_bound(freedom, 0.05 / count) if freedom > 0 else None
        for level, values in by_level.items():
            noise = bound * math.sqrt(squares / freedom / len(values)) if freedom > 0 else None
            found.append((statistics.mean(values), noise, level, pair))
    return found


def spread(pairs, level):
    """Root mean square over kernels of the standard deviation of repetitions at a level; None without repetitions"""
    variances = [
        statistics.variance(v[0] for v in levels[level].values()) for levels in pairs.values() if len(levels.get(level, {})) > 1
    ]
    return math.sqrt(statistics.mean(variances)) if variances else None


def widest(pairs, base):
    """(sd at the level, sd at the base, level, pair) where the sd between pairs grows most; None without levels"""
    found = []
    for pair, levels in pairs.items():
        at_base = [sd for _, sd in levels.get(base, {}).values()]
        for level, values in levels.items():
            if level != base and at_base:
                found.append((statistics.median(sd for _, sd in values.values()), statistics.median(at_base), level, pair))
    return max(found, key=lambda row: row[0] - row[1], default=None)


def format_percent(value, sign=""):
    return "–" if value is None else f"{percent(value):{sign}.2f} %"


def print_tables(factors):
    print("| factor | base level | other levels | largest shift of a ratio | its noise, ± | where | sd of repetitions at the base |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for factor, base in BASE.items():
        pairs = factors.get(factor, {})
        found = shifts(pairs, base)
        if not found:
            continue
        # The largest that stands out of its noise, so that a noisy kernel does not hide a clear one.
        shift, noise, level, pair = max(found, key=lambda row: abs(row[0]) - (row[1] or 0))
        clear = noise is not None and abs(shift) > noise
        others = list(dict.fromkeys(row[2] for row in sorted(found, key=lambda row: (len(row[2]), row[2]))))
        where = f"{pair}, {level}" + ("" if clear else " (noise unknown)" if noise is None else " (within noise)")
        print(
            f"| {factor} | {base} | {', '.join(others)} | {format_percent(shift, '+')} | {format_percent(noise)} | {where} "
            f"| {format_percent(spread(pairs, base))} |"
        )
    print()
    print("Where the blocks of one comparison scatter most, against the base level:")
    print()
    print("| factor | level | kernel | sd between blocks | at the base |")
    print("| --- | --- | --- | --- | --- |")
    for factor, base in BASE.items():
        if row := widest(factors.get(factor, {}), base):
            sd, at_base, level, pair = row
            print(f"| {factor} | {level} | {pair} | {format_percent(sd)} | {format_percent(at_base)} |")
    process = factors.get("process", {})
    fresh, same = spread(process, "fresh"), spread(process, "same")
    if fresh is not None and same is not None:
        print()
        print(
            f"Standard deviation of repetitions: {format_percent(fresh)} in fresh processes, "
            f"{format_percent(same)} in one process."
        )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: hidden_factors.py FILE.csv")
    print_tables(read(sys.argv[1]))


if __name__ == "__main__":
    main()
