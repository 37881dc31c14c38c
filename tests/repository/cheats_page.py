"""docs/cheats.md has what scripts/cheats makes of the data beside it: nothing in its table was typed by hand."""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
loader = importlib.machinery.SourceFileLoader("cheats", str(root / "scripts/cheats"))
cheats = importlib.util.module_from_spec(importlib.util.spec_from_loader("cheats", loader))
sys.dont_write_bytecode = True
loader.exec_module(cheats)
page, rows = cheats.PAGE.read_text(), json.loads(cheats.DATA.read_text())
for part, text in cheats.made(rows).items():
    if f"<!-- made: {part} -->\n{text}\n<!-- end -->" not in page:
        sys.exit(f"docs/cheats.md: its {part} is not what scripts/cheats --page makes")
unknown = sorted(set(rows) - set(cheats.listed()))
if unknown:
    sys.exit(f"{cheats.DATA}: tests/cheats/cheats.toml has no {', '.join(unknown)}")
