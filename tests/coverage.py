#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Line coverage of rooms of src/, from the gcov files that a coverage build's tests left behind.

coverage.py --build DIR [ROOM=PERCENT ...]: prints each file's covered and executable lines, the
least covered first within its room, then a line a room. Status 1 if a room named with a percentage
is below it.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measured(build):
    """{source below src/: {line number: executions}}, tests left out."""
    files = {}
    # The library's objects alone: each is compiled once and linked into every test.
    objects = [p for p in sorted(build.rglob("*.gcda")) if "/src/" in str(p) and "_test.c" not in p.name]
    if not objects:
        sys.exit(f"{build}: no test of a coverage build has run (cmake -DSOFTNDK_COVERAGE=ON)")
    for gcda in objects:
        text = subprocess.run(["gcov", "--json-format", "--stdout", str(gcda)], cwd=build,
                              capture_output=True, text=True, check=True).stdout
        for document in text.splitlines():
            for entry in json.loads(document)["files"]:
                path = pathlib.Path(build, entry["file"]).resolve()
                if not path.is_relative_to(ROOT / "src") or path.name.endswith("_test.c"):
                    continue
                lines = files.setdefault(str(path.relative_to(ROOT / "src")), {})
                for line in entry["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
    return files


def main():
    parser = argparse.ArgumentParser(description="Line coverage of rooms of src/.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    parser.add_argument("--missing", metavar="FILE", help="the lines of src/FILE that did not run")
    parser.add_argument("rooms", nargs="*", default=["provider", "conn", "iwarp", "engine"],
                        metavar="ROOM[=PERCENT]")
    arguments = parser.parse_args()
    files = measured(arguments.build.resolve())
    if arguments.missing:
        source = (ROOT / "src" / arguments.missing).read_text().splitlines()
        for number, count in sorted(files[arguments.missing].items()):
            if not count:
                print(f"{number:5} {source[number - 1]}")
        return 0
    below = 0
    summary = []
    for wish in arguments.rooms:
        room, _, least = wish.partition("=")
        rows = []
        for name, lines in files.items():
            if name.startswith(room + "/"):
                rows.append((sum(1 for c in lines.values() if c), len(lines), name))
        if not rows:
            sys.exit(f"src/{room}: nothing was measured")
        rows.sort(key=lambda row: row[0] / max(row[1], 1))
        for ran, lines, name in rows:
            print(f"{100 * ran / max(lines, 1):6.1f} % {ran:5} of {lines:5}  src/{name}")
        ran, lines = sum(r[0] for r in rows), sum(r[1] for r in rows)
        percent = 100 * ran / lines
        failed = least and percent < float(least)
        below += bool(failed)
        summary.append(f"src/{room}: {percent:.1f} % of {lines} lines" +
                       (f", need {least} %" if failed else ""))
    print("\n".join(summary))
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
