#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares docs/probes.md with the probes in libsoftndk.so.

    check-probes.py [ON|OFF]

Each probe that a row of the document's tables describes, as `name(argument, ...)`, is in the
library, with as many arguments at every place; each in the library is described once. The document
describes each argument. OFF: built without probes; then there are none.

The build directory is SOFTNDK_BUILD_DIR or build/. Prints what differs, one line each, then
`N checks, M failed`; exit status 1 if any failed, 77 with a reason when nothing can be checked.
"""

import collections
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import BUILD, ROOT, Report, skip
LIBRARY = BUILD / "lib/libsoftndk.so"
DOCUMENT = ROOT / "docs/probes.md"


def documented(report):
    """{name: [argument names]}."""
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| `(\w+)\(([\w, ]*)\)` \| (.*) \| (.*) \|$", line)
        if not row:
            continue
        name = row[1]
        arguments = [argument.strip() for argument in row[2].split(",")]
        report.check(name not in found, f"{DOCUMENT.name}: {name} has two rows")
        if row[4] != "the same":
            # Each is told between semicolons; a parenthesis may hold some of its own.
            told = re.sub(r"\([^)]*\)", "", row[4]).split(";")
            report.check(len(told) == len(arguments),
                  f"{DOCUMENT.name}: {name}: have {len(told)} explanations, need {len(arguments)}")
        found[name] = arguments
    return found


def built():
    """{name: [arguments of each place]}, by readelf."""
    # The columns, not the words, are the same in every language; still, none but this one.
    notes = subprocess.run(["readelf", "--wide", "--notes", LIBRARY], check=True, text=True,
                           stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}).stdout
    found = collections.defaultdict(list)
    pattern = r"Provider: softndk\n\s*Name: (\w+)\n.*\n\s*Arguments:([^\n]*)"
    for name, arguments in re.findall(pattern, notes):
        found[name].append(len(arguments.split()))
    return found


def main():
    if not shutil.which("readelf"):
        skip("readelf is missing (binutils)")
    if not LIBRARY.exists():
        skip(f"{LIBRARY} is not built")
    report = Report()
    told = documented(report)
    there = built()
    report.check(len(told) > 0, f"{DOCUMENT.name}: no row was understood")
    if sys.argv[1:] == ["OFF"]:
        report.check(not there, f"built without probes, but {sorted(there)} are there")
        if report.failed:
            return 1
        skip("built without probes (sys/sdt.h is missing, or SOFTNDK_USDT is off)")
    for name, arguments in told.items():
        report.check(name in there, f"{name}: described, but not in {LIBRARY.name}")
        for count in there.get(name, []):
            report.check(count == len(arguments), f"{name}: have {count} arguments in {LIBRARY.name}, "
                  f"need {len(arguments)}: {', '.join(arguments)}")
    for name in there:
        report.check(name in told, f"{name}: in {LIBRARY.name}, but no row of {DOCUMENT.name}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
