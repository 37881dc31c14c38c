#!/usr/bin/env python3
"""Finds classes of the product that have the same name in the same namespace: a program that links both has one of their
functions for both, and no compiler says so.

usage: class_names.py ROOT
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ["agent", "base", "cli", "db", "fleet", "kernels", "orchestrator", "profiles", "report", "web", "worker"]
DEFINITION = re.compile(r"(?:class|struct) (\w+)(?: final)?(?: : [^;]*)? \{")


def definitions(text):
    """Names with their namespaces and lines, without those of anonymous namespaces and of templates' specialisations."""
    spaces = []
    for number, line in enumerate(text.splitlines(), 1):
        if begun := re.match(r"namespace ?([\w:]*) ?\{", line):
            spaces.append(begun[1])
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif (found := DEFINITION.match(line)) and "" not in spaces:
            yield "::".join(spaces + [found[1]]), number


def main():
    root = Path(sys.argv[1])
    places = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            for name, number in definitions(path.read_text()):
                places[name].append(f"{path.relative_to(root)}:{number}")
    twice = {name: at for name, at in places.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        print(f"{', '.join(at)}: {name} is defined {len(at)} times; programs that link both mix them up: rename one")
    return 1 if twice else 0


sys.exit(main())
