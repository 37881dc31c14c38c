#!/usr/bin/env python3
"""Runs the commands that a document shows (`$ ...` in blocks of ```console) one after the other and compares what they
print with what the document says they print; numbers may be off by 2 %, since processors differ in the last digit. A
block of ```console gpu is left alone: it needs a GPU or a toolkit.
Usage: transcripts.py [--write] ROOT PROGRAMS [DOCUMENT...]
Without a DOCUMENT, README.md and all of docs/ are meant. --write puts what the commands print into the documents."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def steps(block):
    """Commands, which may go on in lines that begin with `> `, with what the block says they print."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += line[2:]
        else:
            found[-1][1] += line
    return found


def run(command, folder, programs):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PAWL_", "XDG_"))}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "COLUMNS": "120", "NO_COLOR": "1",
                    "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return result.returncode, result.stdout.replace(str(folder), "~")


def same(said, printed):
    if NUMBER.split(said) != NUMBER.split(printed):
        return False
    pairs = zip(map(float, NUMBER.findall(said)), map(float, NUMBER.findall(printed)))
    return all(abs(a - b) <= max(0.02 * max(a, b), 0.011) for a, b in pairs)


def first_difference(said, printed):
    said, printed = said.splitlines() + ["(end)"], printed.splitlines() + ["(end)"]
    for a, b in zip(said, printed):
        if not same(a, b):
            return f"  says    {a}\n  prints  {b}"
    return ""


def check(document, root, programs, write):
    text = document.read_text()
    if not BLOCK.search(text):
        return []
    wrong = []
    # Commands of one document share a home and a folder, which looks like a checkout.
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made).resolve()
        for name in ("docs", "kernels", "profiles"):
            (folder / name).symlink_to(root / name)

        def renewed(match):
            block = ""
            for command, said in steps(match[1]):
                code, printed = run(command, folder, programs)
                if code != 0:
                    wrong.append(f"{document}: this ends with {code}: {command}{printed}")
                elif not same(said, printed):
                    wrong.append(f"{document}: this prints something else: {command}{first_difference(said, printed)}")
                block += "$ " + "> ".join(command.splitlines(keepends=True)) + printed
            return f"```console\n{block}```"

        new = BLOCK.sub(renewed, text)
    if write:
        document.write_text(new)
    return wrong


def main():
    arguments = sys.argv[1:]
    write = arguments[0] == "--write"
    root, programs, *documents = (pathlib.Path(argument).resolve() for argument in arguments[write:])
    documents = documents or [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    wrong = [line for document in documents for line in check(document, root, programs, write)]
    if wrong:
        print("\n".join(wrong))
        print("written" if write else f"write what they print with: {sys.argv[0]} --write {' '.join(arguments)}")
    return 1 if wrong else 0


sys.exit(main())
