#!/usr/bin/env python3
"""Checks what a program can see of whether the documents are true:
- every relative link of README.md, AGENTS.md, docs/ and skills/ leads to a file that is there, and to a heading of it;
- every path of this repository that they name in `backticks` is there;
- README.md is short enough to be read at once, and docs/README.md lists every page of docs/;
- every message that docs/troubleshooting.md quotes (a line of **`...`**) stands in a source file, where … in it is what
  varies;
- every skill of skills/ has the front matter that agents look for: the name of its folder, and a description;
- no published page (.html below docs/) has a word that we avoid, but for those of an earlier version;
- every piece of code that docs/tutorial.md quotes is part of a file below docs/tutorial/, and all of its kernels and
  kernel.toml are quoted.
Usage: documents.py ROOT"""
import pathlib
import re
import sys

README_LINES = 160
README_WIDTH = 130
NO_SOURCES = {"bench", "build", "dist", "docs", "packaging", "proto", "scripts", "tests", "web"}
MADE = {"build", "dist"}  # by the build
# A reader should not meet them: STYLE.md's list.
AVOIDED = re.compile(r"\b(anew|whoever|to and fro|voices?|wish(?:es|ed)?|(?:is|are) to be had)\b", re.IGNORECASE)
FENCE = re.compile(r"^```(\S*)")
LINK = re.compile(r"\]\(<?([^)>\s]+)>?\)|<(?:img|a)[^>]*\s(?:src|href)=\"([^\"]+)\"")
PATH = re.compile(r"`([A-Za-z][\w-]*/[\w./*-]*)`")
MESSAGE = re.compile(r"^\*\*`(.+)`\*\*")
# Comments and characters are matched to be passed over.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\\n])\'|"(?:\\.|[^"\\\n])*"', re.DOTALL)
ESCAPE = re.compile(r"\\(.)")


def lines_outside_code(text):
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def blocks(text):
    """Line, language and lines of every fenced block."""
    begun = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if match and begun is None:
            begun = (number, match.group(1), [])
        elif match:
            yield begun
            begun = None
        elif begun is not None:
            begun[2].append(line)


def anchors(text):
    """What GitHub makes of the headings."""
    for _, line in lines_outside_code(text):
        if line.startswith("#"):
            heading = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            yield heading.replace(" ", "-")


def broken_links(root, document):
    name = document.relative_to(root).as_posix()
    for number, line in lines_outside_code(document.read_text()):
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            link = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = document.parent / path if path else document
            if not target.exists():
                yield f"{name}:{number}: links to {path}, which is not there"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                yield f"{name}:{number}: {path or name} has no heading #{anchor}"


def missing_paths(root, document):
    """Paths that begin with a folder of the repository; those of a user's own files do not."""
    name = document.relative_to(root).as_posix()
    for number, line in lines_outside_code(document.read_text()):
        for path in PATH.findall(line):
            folder = path.split("/")[0]
            if folder not in MADE and (root / folder).is_dir() and not any(root.glob(path.rstrip("/"))):
                yield f"{name}:{number}: names {path}, which is not there"


def badly_filed(root):
    lines = (root / "README.md").read_text().splitlines()
    if len(lines) > README_LINES:
        yield f"README.md:{README_LINES + 1}: {len(lines)} lines; at most {README_LINES} here, the rest into docs/"
    for number, line in enumerate(lines, 1):
        if len(line) > README_WIDTH:
            yield f"README.md:{number}: {len(line)} characters; at most {README_WIDTH} in a line"
    index = root / "docs" / "README.md"
    listed = {match.group(1).split("#")[0] for match in LINK.finditer(index.read_text()) if match.group(1)}
    for page in sorted(index.parent.glob("*.md")):
        if page != index and page.name not in listed:
            yield f"docs/README.md:1: does not list {page.name}"


def literals(text):
    """The string literals of C++ or Python; neighbouring ones are joined, as a compiler or StrCat does."""
    joined, end = [], None
    for match in TOKEN.finditer(text):
        if not match.group().startswith('"'):
            continue
        literal = ESCAPE.sub(lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), match.group()[1:-1])
        literal = literal.replace("%%", "%")
        if end is not None and not text[end : match.start()].strip(" \n,"):
            joined[-1] += literal
        else:
            joined.append(literal)
        end = match.end()
    return joined


def source_files(root):
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and folder.name not in NO_SOURCES and not folder.name.startswith("."):
            yield from (file for file in sorted(folder.rglob("*")) if file.suffix in (".cc", ".h", ".py"))


def unsaid_messages(root, document):
    said = [literals(file.read_text()) for file in source_files(root)]
    name = document.relative_to(root).as_posix()
    lines = lines_outside_code(document.read_text())
    quoted = [(number, match[1]) for number, line in lines if (match := MESSAGE.match(line))]
    if not quoted:
        yield f"{name}:1: quotes no message"
    for number, message in quoted:
        parts = [part.strip() for part in message.split("…") if part.strip()]
        if not any(all(any(part in literal for literal in file) for part in parts) for file in said):
            yield f"{name}:{number}: no source file says \"{message}\""


def stale_code(root, document):
    name = document.relative_to(root).as_posix()
    folder = document.with_suffix("")
    files = {file: file.read_text().splitlines() for file in sorted(folder.rglob("*")) if file.is_file()}
    quoted = {file: [not line.strip() for line in lines] for file, lines in files.items()}
    for number, language, code in blocks(document.read_text()):
        if language not in ("toml", "cuda", "python", "diff"):
            continue
        found = False
        for file, lines in files.items():
            for at in range(len(lines) - len(code) + 1):
                if lines[at : at + len(code)] == code:
                    quoted[file][at : at + len(code)] = [True] * len(code)
                    found = True
        if not found:
            yield f"{name}:{number}: this code is in no file below {folder.relative_to(root).as_posix()}"
    for file, seen in quoted.items():
        if (file.suffix == ".cu" or file.name == "kernel.toml") and not all(seen):
            yield f"{file.relative_to(root).as_posix()}:{seen.index(False) + 1}: {name} does not quote this line"


def avoided_words(root):
    for page in sorted((root / "docs").rglob("*.html")):
        name = page.relative_to(root).as_posix()
        for number, line in enumerate(page.read_text().splitlines(), 1):
            yield from (f"{name}:{number}: says \"{match[0]}\"" for match in AVOIDED.finditer(line))


def unusable_skills(root):
    for skill in sorted((root / "skills").glob("*/SKILL.md")):
        name = skill.relative_to(root).as_posix()
        match = re.match(r"---\n(.*?)\n---\n", skill.read_text(), re.DOTALL)
        fields = dict(line.split(": ", 1) for line in match[1].splitlines()) if match else {}
        if fields.get("name") != skill.parent.name:
            yield f"{name}:1: the front matter's name is not {skill.parent.name}"
        if not 1 <= len(fields.get("description", "")) <= 1024:
            yield f"{name}:1: the front matter's description must have 1 to 1024 characters"


def mistakes(root):
    documents = [root / "README.md", *root.glob("AGENTS.md"), *sorted((root / "docs").rglob("*.md")),
                 *sorted((root / "skills").rglob("*.md"))]
    for document in documents:
        yield from broken_links(root, document)
        yield from missing_paths(root, document)
    yield from avoided_words(root)
    yield from unusable_skills(root)
    yield from badly_filed(root)
    yield from unsaid_messages(root, root / "docs" / "troubleshooting.md")
    yield from stale_code(root, root / "docs" / "tutorial.md")


def main():
    found = list(mistakes(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
