#!/usr/bin/env python3
"""Draws what slurm_test.py --csv wrote, for docs/fleet.md: plot.py FILE.csv FILE.svg"""
import csv
import sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 300, 48, 16, 150, 40
SERIES = [("queued", "trials queued", "#c2410c"), ("workers", "workers", "#1d4ed8"), ("pending jobs", "jobs that wait", "#6b7280")]


def main():
    with open(sys.argv[1]) as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    last, top = rows[-1]["seconds"], max(row[name] for row in rows for name, _, _ in SERIES)
    step = next(step for step in (5, 10, 20, 50, 100, 200) if top / step <= 6)
    top = step * -(-top // step)
    x = lambda seconds: LEFT + (WIDTH - LEFT - RIGHT) * seconds / last
    y = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for value in range(0, int(top) + 1, step):
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>'
                     f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for seconds in range(0, int(last) + 1, 60):
        parts.append(f'<text x="{x(seconds):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{seconds}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">seconds</text>')
    for at, (name, label, colour) in enumerate(SERIES):
        points = " ".join(f"{x(row['seconds']):.1f},{y(row[name]):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 20 * at}" fill="{colour}">{label}</text>')
    with open(sys.argv[2], "w") as file:
        file.write("\n".join(parts + ["</svg>"]) + "\n")


main()
