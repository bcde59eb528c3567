#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares docs/tuning.md with the options of the library, as `ndkinfo --options` prints them.

    check-tuning.py [BUILD]

Each option has one row, in a table with the columns below, with the default and range of the
library and with words in every column; each row is an option. The build directory is the argument,
SOFTNDK_BUILD_DIR or build/. Prints what differs, one line each, then `N checks, M failed`; exit
status 1 if any failed.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report
DOCUMENT = ROOT / "docs/tuning.md"
COLUMNS = ["Option", "Default", "Range", "Why this default", "Effect"]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(report):
    """{option: [default, range, why, effect]} of all tables that begin with COLUMNS."""
    found = {}
    inside = False
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        row = cells(line)
        if row == COLUMNS:
            inside = True
        elif inside and not line.startswith("|---"):
            name = row[0].strip("`")
            report.check(name not in found, f"{name} has two rows")
            report.check(len(row) == len(COLUMNS) and all(row),
                  f"{name}: have {len(row)} columns, need {len(COLUMNS)}, none of them empty")
            found[name] = row[1:]
    return found


def options(build):
    """{option: (default, range)}; the range as in the document: values or low..high, and unit."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("SOFTNDK_")}
    text = subprocess.run([build / "bin/ndkinfo", "--options"], check=True, text=True,
                          stdout=subprocess.PIPE, env=environment).stdout
    found = {}
    for line in text.splitlines():
        row = re.match(r"(\w+)\s+(\S+)\s+(\S+)(.*)", line)
        if not row:
            continue
        name, standard, values = row[1], row[2], row[3].replace("|", ", ").replace(",", ", ")
        # The unit stands in a column of its own, which may be empty.
        unit = re.match(r"\s{1,24}(\S+)\s{2,}\S", row[4])
        unit = unit[1] if unit and unit[1] != "0/1" else ""
        found[name] = (standard, values, unit)
    return found


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                         os.environ.get("SOFTNDK_BUILD_DIR", ROOT / "build"))
    report = Report()
    told = rows(report)
    there = options(build)
    report.check(len(there) > 0, "ndkinfo --options was not understood")
    for name, (standard, values, unit) in there.items():
        report.check(name in told, f"option {name} has no row")
        if name in told:
            want = re.sub(r",\s+", ", ", f"{values} {unit}".strip())
            report.check(told[name][0] == standard,
                  f"{name}: have default {told[name][0]}, need {standard}")
            report.check(told[name][1] == want, f"{name}: have range \"{told[name][1]}\", need \"{want}\"")
    for name in told:
        report.check(name in there, f"{name} is no option")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
