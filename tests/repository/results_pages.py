"""The pages of docs/results are what scripts/results makes of the data beside them: nothing in them was typed by hand. In
the table each ratio is that of the two times beside it."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
pages = root / "docs/results"
data = sorted(pages.glob("*.json"))
if not data:
    sys.exit("docs/results has no data")
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder)
    for path in data:
        shutil.copy(path, made)
    subprocess.run([sys.executable, root / "scripts/results", "--pages", "--output", made], check=True)
    expected = {path.name: path.read_text() for path in made.glob("*.md")}
found = {path.name: path.read_text() for path in pages.glob("*.md")}
different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
if different:
    sys.exit(f"differ from what scripts/results --pages makes: {', '.join(different)}")

ALIKE = 0.015  # what rounding and the mean of ratios leave
RATIO, TIMES = re.compile(r"([\d.]+)x"), re.compile(r"([\d.]+) us → ([\d.]+) us")
paired = 0
for line in found["README.md"].splitlines():
    cells = line.split(" | ")
    for ratio, times in zip(cells, cells[1:]):
        said, two = RATIO.match(ratio), TIMES.match(times)
        if not two:
            continue
        if not said:
            sys.exit(f"docs/results/README.md: {times} has no ratio before it: {line}")
        slow, fast = float(two[1]), float(two[2])
        if abs(slow / fast / float(said[1]) - 1) > ALIKE:
            sys.exit(f"docs/results/README.md: {slow} us / {fast} us is {slow / fast:.2f}x, not {said[1]}x: {line}")
        paired += 1
if paired < len(data):
    sys.exit(f"docs/results/README.md: {paired} ratios with their times, expected one or more for each of {len(data)} results")
