#!/usr/bin/env python3
"""Checks that every folder includes only what lies below it, and that every .cc includes its own header first (which
proves that the header compiles alone). Usage: include_direction.py ROOT"""
import pathlib
import re
import sys

# A folder may always include itself, the generated protos (pawl/v1) and what the build embeds (its own folder).
ALLOWED = {
    "proto": [],
    "channel": [],
    "expression": [],
    "options": ["toml"],
    "faults": [],
    "toml": [],
    "kernels": ["expression", "toml"],
    "profiles": ["expression", "toml"],
    "orchestrator/engine": ["profiles", "kernels"],
    "db": ["faults"],
    "report": [],
    "orchestrator": ["orchestrator/engine", "db", "report", "profiles", "kernels", "options", "channel", "faults"],
    "worker": ["profiles", "kernels", "options", "channel", "faults"],
    "cli": ["report", "expression", "kernels", "profiles", "worker", "channel"],
}
WITHOUT_PROTO = ["expression", "options", "faults", "toml"]
# A library whose exceptions and types stay in one file; CUDA is loaded at run time, never included.
ONLY_IN = {"muParser": ["expression/expression.cc"], r"toml\+\+": ["toml/toml.h"], "cuda": [], "nvrtc": [], "nvml": []}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def folder_of(path):
    for folder in sorted(ALLOWED, key=len, reverse=True):
        if path.startswith(folder + "/"):
            return folder
    return None


def mistakes(root):
    for folder, below in ALLOWED.items():
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            name = file.relative_to(root).as_posix()
            lines = file.read_text().splitlines()
            if file.suffix == ".h" and "#pragma once" not in lines:
                yield f"{name}:1: has no #pragma once"
            first = True
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                included = match.group(1)
                where = f"{name}:{number}: includes {included}"
                if first and file.suffix == ".cc" and file.with_suffix(".h").exists():
                    own = name[: -len(".cc")] + ".h"
                    if included != own:
                        yield f"{where}: its own header {own} comes first"
                first = False
                target = folder_of(included)
                if included.startswith("pawl/"):
                    if folder in WITHOUT_PROTO:
                        yield f"{where}: {folder} does without the protos"
                elif target is None:
                    if (file.parent / included).exists():
                        yield f"{where}: name it by its path from the root"
                elif target != folder and target not in below:
                    yield f"{where}: {folder} may include {', '.join(below) or 'nothing'} besides itself"
                for library, files in ONLY_IN.items():
                    if re.match(library, included) and name not in files:
                        yield f"{where}: only {' and '.join(files) or 'device code'} may"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(mistakes(root))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
