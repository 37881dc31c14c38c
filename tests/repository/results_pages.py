"""The pages of docs/results are what scripts/results makes of the data beside them: nothing in them was typed by hand."""
import pathlib
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
