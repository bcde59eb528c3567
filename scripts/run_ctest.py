#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_ctest.py <build directory> [ctest arguments]: ctest, with the reasons of skipped tests.

ctest only lists which tests were skipped. This passes its output on as it comes, but holds the
closing lines back until ctest has written its log, and adds to each skipped test the last line
that it printed. Ends with ctest's status.
"""

import pathlib
import re
import subprocess
import sys


def last_words(log):
    """{test name: last line of its output} from ctest's LastTest.log."""
    words = {}
    name = None
    last = ""
    for line in log.splitlines():
        begin = re.match(r"\d+/\d+ Test: (\S+)$", line)
        if begin:
            name, last = begin.group(1), ""
        elif line.startswith("<end of output>"):
            words[name] = last
        elif line.strip():
            last = line.strip()
    return words


def main():
    directory = pathlib.Path(sys.argv[1])
    command = ["ctest", "--test-dir", str(directory), *sys.argv[2:]]
    closing = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as ctest:
        for line in ctest.stdout:
            if closing or re.match(r"\d+% tests passed", line):
                closing.append(line)
            else:
                print(line, end="", flush=True)
    words = {}
    log = directory / "Testing/Temporary/LastTest.log"
    if log.is_file():
        words = last_words(log.read_text(encoding="utf-8", errors="replace"))
    for line in closing:
        skipped = re.match(r"\s*\d+ - (\S+) \(Skipped\)$", line.rstrip())
        if skipped and words.get(skipped.group(1)):
            line = f"{line.rstrip()} {words[skipped.group(1)]}\n"
        print(line, end="")
    return ctest.returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
