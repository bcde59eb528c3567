#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Line and branch coverage of rooms of src/, from the gcov files that a coverage build's tests left behind.

coverage.py --build DIR [ROOM=PERCENT ...] [--branches ROOM=PERCENT]: prints each file's covered and
executable lines, the least covered first within its room, then a line a room; the same for the branches
of the rooms named so. Status 1 if a room named with a percentage is below it.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measured(build):
    """{source below src/: {line number: executions}} and {source: {(line, branch): executions}}, tests left
    out."""
    files, branches = {}, {}
    # The library's objects alone: each is compiled once and linked into every test.
    objects = [p for p in sorted(build.rglob("*.gcda")) if "/src/" in str(p) and "_test.c" not in p.name]
    if not objects:
        sys.exit(f"{build}: no test of a coverage build has run (cmake -DSOFTNDK_COVERAGE=ON)")
    for gcda in objects:
        text = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout",
                               str(gcda)], cwd=build,
                              capture_output=True, text=True, check=True).stdout
        for document in text.splitlines():
            for entry in json.loads(document)["files"]:
                path = pathlib.Path(build, entry["file"]).resolve()
                if not path.is_relative_to(ROOT / "src") or path.name.endswith("_test.c"):
                    continue
                name = str(path.relative_to(ROOT / "src"))
                lines = files.setdefault(name, {})
                ways = branches.setdefault(name, {})
                for line in entry["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
                    for index, branch in enumerate(line.get("branches", [])):
                        key = (number, index)
                        ways[key] = ways.get(key, 0) + branch["count"]
    return files, branches


def judge(files, wishes, what, summary):
    """Prints what ran of the rooms' files; the number of rooms below their wish."""
    below = 0
    for wish in wishes:
        room, _, least = wish.partition("=")
        rows = []
        for name, counts in files.items():
            if name.startswith(room + "/"):
                rows.append((sum(1 for c in counts.values() if c), len(counts), name))
        if not rows:
            sys.exit(f"src/{room}: nothing was measured")
        rows.sort(key=lambda row: row[0] / max(row[1], 1))
        for ran, every, name in rows:
            print(f"{100 * ran / max(every, 1):6.1f} % {ran:5} of {every:5} {what}  src/{name}")
        ran, every = sum(r[0] for r in rows), sum(r[1] for r in rows)
        percent = 100 * ran / every
        failed = least and percent < float(least)
        below += bool(failed)
        summary.append(f"src/{room}: {percent:.1f} % of {every} {what}" +
                       (f", need {least} %" if failed else ""))
    return below


def main():
    parser = argparse.ArgumentParser(description="Line and branch coverage of rooms of src/.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    parser.add_argument("--missing", metavar="FILE", help="lines and branches of src/FILE that did not run")
    parser.add_argument("rooms", nargs="*", default=["provider", "conn", "iwarp", "engine"],
                        metavar="ROOM[=PERCENT]")
    parser.add_argument("--branches", nargs="*", default=[], metavar="ROOM[=PERCENT]")
    arguments = parser.parse_args()
    files, branches = measured(arguments.build.resolve())
    if arguments.missing:
        source = (ROOT / "src" / arguments.missing).read_text().splitlines()
        for number, count in sorted(files[arguments.missing].items()):
            ways = [c for (line, _), c in sorted(branches[arguments.missing].items()) if line == number]
            if not count or not all(ways):
                print(f"{number:5} {source[number - 1]}" + (f"   // branches: {ways}" if count else ""))
        return 0
    summary = []
    below = judge(files, arguments.rooms, "lines", summary)
    below += judge(branches, arguments.branches, "branches", summary)
    print("\n".join(summary))
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
