#!/usr/bin/env python3
"""Checks with clang's -Wthread-safety that whatever a mutex guards is used only with the mutex held, and that service code
has no mutex which clang can't check. Usage: locks.py ROOT BUILD CLANG, where BUILD has compile_commands.json"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FOLDERS = ["base", "profiles", "db", "agent", "orchestrator", "worker", "fleet", "cli"]
# clang knows nothing of these: absl::Mutex with ABSL_GUARDED_BY takes their place.
UNCHECKED = re.compile(r"std::(mutex|shared_mutex|recursive_mutex|timed_mutex|condition_variable|lock_guard|unique_lock|"
                       r"shared_lock|scoped_lock)\b")
# They wait by the time of day, which may be set, and ThreadSanitizer does not see them.
BY_TIME = re.compile(r"\b(?:Await|LockWhen|Wait)With(?:Timeout|Deadline)\b")
HOLDS = re.compile(r"\babsl::Mutex|\bABSL_GUARDED_BY\b")
CLASS = re.compile(r"^\s*(?:class|struct)\s+(?:ABSL_\w+\s+)?(\w+)[^;]*\{", re.M)
INCLUDE = re.compile(r'^#include ([<"][^>"]+[>"])', re.M)


def unchecked_mutexes(root, files):
    for file in files:
        name = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := UNCHECKED.search(line):
                yield f"{name}:{number}: uses {match.group(0)}, which clang can't check: use absl::Mutex"
            if match := BY_TIME.search(line):
                yield f"{name}:{number}: uses {match.group(0)}, which waits by the time of day: use SteadyCondition"


def files_with_locks(files):
    """Those that name a mutex, and those that define a member of a class whose header has one."""
    classes = set()
    for file in files:
        if file.suffix == ".h" and HOLDS.search(text := file.read_text()):
            classes.update(CLASS.findall(text))
    member = re.compile(r"^\S[^\n]*\b(?:" + "|".join(sorted(classes)) + r")::~?\w+\(" if classes else r"(?!)", re.M)
    for file in files:
        if file.suffix == ".cc" and (HOLDS.search(text := file.read_text()) or member.search(text)):
            yield file


def flags_of(build):
    """Include paths and definitions, of the whole build: batches of files are listed instead of the files, and one
    precompiled header serves all."""
    flags = {("-std=c++20",): None}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = iter(shlex.split(entry["command"]))
        for word in words:
            if word in ("-I", "-isystem", "-D"):
                flags[(word, next(words))] = None
            elif word.startswith(("-I", "-isystem", "-D")):
                flags[(word,)] = None
    return [word for flag in flags for word in flag]


def precompile(clang, root, files, flags, folder):
    """What the files and the headers beside them include from elsewhere: parsing it is most of the work."""
    beside = {header for file in files for header in file.parent.glob("*.h")}
    included = {name for file in beside.union(files) for name in INCLUDE.findall(file.read_text())}
    elsewhere = [name for name in sorted(included) if not (root / name.strip('<>"')).exists() and "httplib" not in name]
    header, precompiled = folder / "common.h", folder / "common.pch"
    header.write_text("".join(f"#include {name}\n" for name in elsewhere))
    options = ["-Wno-everything", "-fpch-instantiate-templates", "-x", "c++-header"]
    subprocess.run([clang, *flags, *options, header, "-o", precompiled], check=True)
    return ["-include-pch", precompiled]


def check(clang, file, flags):
    command = [clang, *flags, "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", file]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


def main():
    root, build, clang = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    if not clang or clang.endswith("NOTFOUND"):
        print("there is no clang++: scripts/setup installs it")
        return 1
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*")) if file.suffix in (".h", ".cc")]
    found = list(unchecked_mutexes(root, files))
    checked = list(files_with_locks(files))
    flags = [f"-I{root}"] + flags_of(build)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        flags += precompile(clang, root, checked, flags, pathlib.Path(folder))
        found += [text for text in pool.map(lambda file: check(clang, file, flags), checked) if text]
    print("\n".join(found) if found else f"{len(checked)} files hold locks or define members of classes that do")
    return 1 if found or not checked else 0


sys.exit(main())
