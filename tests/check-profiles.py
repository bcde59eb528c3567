#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares docs/profiles.md with what the profiles do.

    check-profiles.py [--build DIR]

 - "What each advertises": a row for every fact that `ndkinfo --json --profile NAME lo` prints of
   NDK_ADAPTER_INFO, with its value for each profile; the raw flag word is told by its flags
 - "What else they do differently": a row for every option that a profile sets and that no field of
   the first table tells of, with the value of each profile
 - "proved by" names a test that exists, as program:test, or says why there is none
 - the files in profiles/ and the columns are the same

The build directory is --build, SOFTNDK_BUILD_DIR or build/. Prints what differs, one line each,
then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report
DOCUMENT = ROOT / "docs/profiles.md"
NOT_TOLD = {"AdapterFlags", "UnknownAdapterFlags"}


def table(text, heading):
    """({row: cells}, column names) of the first table below a heading."""
    part = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line] for line in lines]
    return {row[0]: row[1:] for row in rows[2:]}, rows[0][1:]


def settings(path):
    """{key: value} of a profile."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        key, equals, value = line.split("#", 1)[0].partition("=")
        if equals:
            found[key.strip()] = value.strip()
    return found


def run(build, *arguments):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("SOFTNDK_")}
    environment["SOFTNDK_PROFILE_DIR"] = str(ROOT / "profiles")
    environment["SOFTNDK_LOG"] = "none"
    return subprocess.run([build / "bin/ndkinfo", *arguments], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def facts(build, profile):
    """{name: text} of NDK_ADAPTER_INFO, as the document spells values."""
    adapter = json.loads(run(build, "--json", "--profile", profile, "lo"))["Adapters"][0]
    names = list(adapter)
    spelt = {True: "yes", False: "no"}
    return {name: spelt[adapter[name]] if isinstance(adapter[name], bool) else str(adapter[name])
            for name in names[names.index("Version"):] if name not in NOT_TOLD}


def check_proof(report, row, proof):
    if proof.startswith("- "):
        report.check(len(proof) > 5, f"{row}: a dash and no reason")
        return
    program, _, test = proof.partition(":")
    files = [*(ROOT / "src").rglob(f"{program}.c"), *(ROOT / "tests").rglob(f"{program}.c")]
    found = files and re.search(rf"\b(?:cmocka_unit_test\w*|BOTH_MODES)\({test}\b",
                                files[0].read_text(encoding="utf-8"))
    report.check(found, f"{row}: proved by {proof}: there is no such test")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("SOFTNDK_BUILD_DIR", ROOT / "build")))
    build = parser.parse_args().build
    report = Report()
    text = DOCUMENT.read_text(encoding="utf-8")

    advertised, columns = table(text, "What each advertises")
    others, other_columns = table(text, "What else they do differently")
    profiles = columns[:-1]
    report.equal(sorted(profiles), sorted(p.name for p in (ROOT / "profiles").iterdir()),
                 "the columns and the files of profiles/")
    report.equal(other_columns, columns, "the columns of the second table")

    options = {}  # name: (default, its first word of help)
    for line in run(build, "--options").splitlines():
        name, default, _, rest = line.split(None, 3)
        options[name] = (default, rest)
    given = {profile: settings(ROOT / "profiles" / profile) for profile in profiles}

    for at, profile in enumerate(profiles):
        have = facts(build, profile)
        report.equal(sorted(advertised), sorted(have), f"{profile}: the rows and what is printed")
        for name, value in have.items():
            if name in advertised:
                report.equal(advertised[name][at], value, f"{profile}: {name} in the table")
        for name, cells in others.items():
            report.check(name in options, f"{name}: no option")
            report.equal(cells[at], given[profile].get(name, options.get(name, ("", ""))[0]),
                         f"{profile}: {name} in the table")
        if profile == "default":
            continue
        for key, value in given[profile].items():
            if value == options[key][0]:
                continue  # said for clearness
            told = any(re.search(rf"\b{field}\b", options[key][1]) for field in advertised)
            report.check(told or key in others or key in ("ndkpi", "read_sink_not_required"),
                         f"{profile}: {key} stands in no table")
    for name, cells in {**advertised, **others}.items():
        check_proof(report, name, cells[-1])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
