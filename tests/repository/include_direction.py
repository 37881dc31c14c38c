#!/usr/bin/env python3
"""Checks that every folder includes only what lies below it, that every .cc includes its own header first (which proves
that the header compiles alone), that no folder has too many files to be read as a list, that tests/ mirrors the folders, and
that the table of folders in docs/development.md says the same. Usage: include_direction.py ROOT"""
import pathlib
import re
import sys

# What each folder may include beside itself, the generated protos (pawl/v1) and what the build embeds. A name covers the
# folders in it that have no row of their own. The rooms of one folder are listed from the bottom up.
ALLOWED = {
    "proto": [],
    "base/channel": [],
    "base/elements": [],
    "base/expression": ["base/names"],
    "base/faults": [],
    "base/messages": ["base/names"],
    "base/options": ["base/text", "base/toml"],
    "base/hash": [],
    "base/names": [],
    "base/revision": [],
    "base/streams": [],
    "base/sync": [],
    "base/text": [],
    "base/toml": [],
    "kernels/source": ["base"],
    "kernels": ["kernels/source", "base"],
    "kernels/read": ["kernels", "base"],
    "profiles": ["base"],
    "db": ["base"],
    "report": [],
    "agent/campaigns": ["base"],
    "agent/mcp": ["base"],
    "agent/tools": ["agent/mcp", "agent/campaigns", "report", "kernels", "base"],
    "agent/drive": ["agent/tools", "agent/mcp", "agent/campaigns", "report", "base"],
    "orchestrator/engine/state": ["profiles", "kernels", "base"],
    "orchestrator/engine/verdict": ["orchestrator/engine/state", "profiles", "kernels", "base"],
    "orchestrator/engine/search": ["orchestrator/engine/state", "profiles", "kernels", "base"],
    "orchestrator/engine/ahead": ["orchestrator/engine/verdict", "orchestrator/engine/search", "orchestrator/engine/state", "profiles",
                                  "kernels", "base"],
    "orchestrator/engine/report": ["orchestrator/engine/search", "orchestrator/engine/state", "profiles", "kernels"],
    "orchestrator/security": ["base"],
    "orchestrator/meters": ["orchestrator/engine/state", "base"],
    "orchestrator/core": ["orchestrator/meters", "orchestrator/security", "orchestrator/engine", "db", "report", "profiles", "kernels", "base"],
    "orchestrator/requests": ["orchestrator/core", "orchestrator/security", "orchestrator/engine", "kernels", "base"],
    "orchestrator/http": ["orchestrator/core", "orchestrator/security", "agent", "profiles", "kernels", "web", "base"],
    "orchestrator/rpc": ["orchestrator/http", "orchestrator/core", "orchestrator/meters", "orchestrator/security", "orchestrator/engine", "agent",
                         "db", "profiles", "kernels", "base"],
    "orchestrator/archive": ["orchestrator/core", "orchestrator/engine", "db", "profiles", "base"],
    "orchestrator": ["orchestrator/rpc", "orchestrator/archive", "db", "base"],
    "worker/process": ["base"],
    "worker/host": ["worker/process", "profiles", "kernels", "base"],
    "worker/sandbox": ["worker/host", "worker/process", "base"],
    "worker/build": ["worker/sandbox", "worker/host", "worker/process", "kernels", "base"],
    "worker/problem": ["worker/build", "worker/sandbox", "worker/process", "kernels", "base"],
    "worker/validate": ["worker/problem", "worker/build", "worker/process", "profiles", "kernels", "base"],
    "worker/device": ["worker/validate", "worker/problem", "worker/build", "worker/sandbox", "worker/host", "worker/process", "profiles",
                      "kernels", "base"],
    "worker/trial": ["worker/device", "worker/validate", "worker/problem", "worker/build", "worker/sandbox", "worker/host", "worker/process",
                     "profiles", "kernels", "base"],
    "worker/replay": ["worker/trial", "worker/build", "worker/process", "profiles", "kernels", "base"],
    "worker/check": ["worker/replay", "worker/trial", "worker/device", "worker/validate", "worker/problem", "worker/build", "worker/sandbox",
                     "worker/host", "worker/process", "profiles", "kernels", "base"],
    "worker/record": ["worker/check", "worker/replay", "worker/trial", "worker/validate", "worker/build", "worker/host",
                      "worker/process", "profiles", "kernels", "base"],
    "worker/lease": ["worker/replay", "worker/trial", "worker/host", "worker/process", "profiles", "kernels", "base"],
    "worker/runner/driver": ["worker/process", "base"],
    "worker/runner": ["worker/runner/driver", "worker/validate", "worker/build", "worker/process", "kernels", "base"],
    "fleet": ["worker/process", "base"],
    "cli/draft/read": ["kernels", "base"],
    "cli/draft": ["cli/draft/read", "kernels", "base"],
    "cli/text": ["report", "profiles", "kernels", "base"],
    "cli/connect": ["cli/text", "agent", "profiles", "kernels", "worker/process", "base"],
    "cli/drive": ["cli/connect", "cli/text", "agent", "worker/process", "base"],
    "cli/handoff": ["kernels", "worker/problem", "worker/build", "base"],
    "cli/output": ["cli/handoff", "cli/connect", "cli/text", "report", "kernels", "worker/build", "base"],
    "cli/follow": ["cli/output", "cli/connect", "cli/text", "report", "base"],
    "cli/compare": ["cli/connect", "cli/text", "kernels", "worker/trial", "base"],
    "cli/import": ["cli/output", "cli/text", "kernels", "worker/replay", "base"],
    "cli/commands": ["cli/import", "cli/compare", "cli/follow", "cli/draft", "cli/output", "cli/drive", "cli/connect", "cli/text", "agent", "report", "profiles",
                     "kernels", "worker", "base"],
    "cli": ["cli/commands", "base"],
}
WITHOUT_PROTO = ["agent/mcp", "base/expression", "base/options", "base/faults", "base/toml", "base/hash", "base/names",
                 "base/streams", "base/sync", "base/text"]
# A library whose exceptions and types stay in one file; CUDA is loaded at run time, never included.
ONLY_IN = {"muParser": ["base/expression/expression.cc"], r"toml\+\+": ["base/toml/toml.h"], "cuda": [], "nvrtc": [], "nvml": []}
# A folder with more needs rooms.
MOST_FILES = 35
# Folders of tests/ that test the whole, or with other people's programs.
OF_THE_WHOLE = ["agent/clients", "cheats", "gpu", "host_gpu", "promises", "repository"]
SOURCES = (".h", ".cc", ".cu", ".cuh", ".cpp", ".py")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def folder_of(path):
    for folder in sorted(ALLOWED, key=len, reverse=True):
        if path.startswith(folder + "/"):
            return folder
    return None


def may_include(target, below):
    return any(target == folder or target.startswith(folder + "/") for folder in below)


def mistakes(root):
    for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            name = file.relative_to(root).as_posix()
            folder = folder_of(name)
            if folder is None:
                yield f"{name}:1: its folder has no row in include_direction.py"
                continue
            below = ALLOWED[folder]
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
                if included.endswith("/embedded.h") and name.startswith(included[: -len("embedded.h")]):
                    continue  # what the build embeds belongs to the rooms of the folder, too
                if included.startswith("pawl/"):
                    if folder in WITHOUT_PROTO:
                        yield f"{where}: {folder} does without the protos"
                elif target is None:
                    if (file.parent / included).exists():
                        yield f"{where}: name it by its path from the root"
                elif target != folder and not may_include(target, below):
                    yield f"{where}: {folder} may include {', '.join(below) or 'nothing'} besides itself"
                for library, files in ONLY_IN.items():
                    if re.match(library, included) and name not in files:
                        yield f"{where}: only {' and '.join(files) or 'device code'} may"


def full_folders(root):
    for top in sorted({folder.split("/")[0] for folder in ALLOWED}):
        folders = {file.parent for file in (root / top).rglob("*") if file.suffix in SOURCES}
        for folder in sorted(folders):
            files = sum(file.suffix in SOURCES for file in folder.iterdir())
            if files > MOST_FILES:
                yield f"{folder.relative_to(root).as_posix()}: {files} source files, at most {MOST_FILES}: give it rooms"


def misplaced_tests(root):
    """A test stands in the folder of tests/ that has the path of what it tests."""
    for file in sorted((root / "tests").rglob("*_test.*")):
        name = file.relative_to(root).as_posix()
        folder = file.parent.relative_to(root / "tests").as_posix()
        if "node_modules" in name or "/golden/" in name or may_include(folder, OF_THE_WHOLE):
            continue
        if not (root / folder).is_dir():
            yield f"{name}:1: there is no folder {folder} that it could test"
            continue
        first = next((match.group(1) for line in file.read_text().splitlines() if (match := INCLUDE.match(line))), "")
        own = first.rpartition("/")[0]
        if file.suffix == ".cc" and folder_of(first) is not None and own != folder:
            yield f"{name}:1: it tests {first}: its place is tests/{own}"


def documented(page):
    """Line and folder of each row of the table, and the names in what it may include."""
    tops = {folder.split("/")[0] for folder in ALLOWED} | {"web"}
    for number, line in enumerate(page.read_text().splitlines(), 1):
        cells = [re.findall(r"`([^`]+)`", cell) for cell in line.split("|")]
        if len(cells) != 5 or len(cells[1]) != 1 or not cells[1][0].endswith("/"):
            continue
        folder = cells[1][0].rstrip("/").replace("proto/pawl/v1", "proto")
        if folder not in ALLOWED:
            continue
        # A room of the same top folder goes by its own name.
        below = [name if name.split("/")[0] in tops else f"{folder.split('/')[0]}/{name}" for name in cells[3]]
        yield number, folder, below


def wrong_table(page):
    seen = set()
    for number, folder, below in documented(page):
        seen.add(folder)
        # "not `proto`" where it does without the protos.
        if sorted(below) != sorted(ALLOWED[folder] + ["proto"] * (folder in WITHOUT_PROTO)):
            yield f"docs/development.md:{number}: {folder} may include {', '.join(ALLOWED[folder]) or 'nothing'}"
    for folder in sorted(set(ALLOWED) - seen):
        yield f"docs/development.md:1: has no row for {folder}"


def main():
    root = pathlib.Path(sys.argv[1])
    found = [*mistakes(root), *full_folders(root), *misplaced_tests(root), *wrong_table(root / "docs" / "development.md")]
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
