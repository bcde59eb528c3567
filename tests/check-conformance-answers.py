#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows which rows of the status table a run of the conformance kit has not seen.

    check-conformance-answers.py [--all] BUILD [ndkconform argument...]

Runs BUILD/bin/ndkconform with --answers and the arguments, and holds what the provider answered
against BUILD/bin/ndkstatus --json: each status that NDKPI documents for a function, inline and, for
calls that may pend, through the completion. With --all also the statuses that NDKPI leaves open and
softndk chose. Prints a line for each function with what is missing. For authors of cases; ends 0 as
long as both programs do.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# The three functions that one name has in three tables, and the close of nine.
SAME = {
    "NdkGetListenerLocalAddress": "NdkGetLocalAddress",
    "NdkGetSharedEndpointLocalAddress": "NdkGetLocalAddress",
}
CLOSES = "Cq Pd Qp Mr Mw Srq Connector Listener SharedEndpoint".split()


def read_answers(path):
    seen = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        name, status, how, _ = line.split()
        seen.add((name, status, how))
        if name.removeprefix("NdkClose") in CLOSES:
            seen.add(("NdkCloseObject", status, how))
    return seen


def rows(function, everything):
    """(status, "inline" or "async") of each row, half by half."""
    for row in function["statuses"]:
        if row["ours"] and not everything:
            continue
        yield row["status"], "inline"
        if row["how"] != "inline":
            yield row["status"], "async"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--all", action="store_true", help="also the statuses softndk chose")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    programs = arguments.build / "bin"

    table = json.loads(subprocess.check_output([programs / "ndkstatus", "--json"]))
    with tempfile.TemporaryDirectory() as scratch:
        answers = pathlib.Path(scratch) / "answers"
        run = subprocess.run(
            [programs / "ndkconform", "--answers", answers, *arguments.arguments],
            stdout=subprocess.PIPE, text=True, check=False)
        print(run.stdout.splitlines()[-1] if run.stdout else "ndkconform says nothing")
        if not answers.is_file():
            return run.returncode or 1
        seen = read_answers(answers)

    total = missing = 0
    for function in table["functions"]:
        name = SAME.get(function["name"], function["name"])
        absent = []
        for status, how in rows(function, arguments.all):
            total += 1
            if (name, status, how) not in seen:
                absent.append(f"{status.removeprefix('STATUS_')} {how}")
        missing += len(absent)
        if absent:
            print(f"{function['name']}: {', '.join(absent)}")
    print(f"{total - missing} of {total} answers seen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
