#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says which test proves each status of each function, and writes that into docs/statuses.md.

    check-status-tests.py [--program PATH] [--write] [--missing [NAME]]

The lists are tests/status_tests/*.list, a half of a row a line; # begins a comment:

    NdkListen STATUS_SHARING_VIOLATION inline connect_calls_test:listen_ports
    NdkListen STATUS_SHARING_VIOLATION async  connect_calls_test:listen_ports
    NdkBuildLAM STATUS_SUCCESS         async  - the reason why it cannot occur here
    WorkCompletion STATUS_CANCELLED    write  status_completion_test:flushed

`inline` is the return value, `async` the callback. A row has an async half if it is documented to
come either way, and for STATUS_SUCCESS if the call may pend. Of a work completion's row each kind
of request that can have the status is one "half". The program is the name of the test's file
without .c, the test a function in its table of cmocka tests.

 - every half of every row of src/base/status_table.def has exactly one line, and no line is about
   anything else
 - every test named exists; what it runs, helpers of tests/support included, names the status and
   the slot of the function
 - docs/statuses.md is what --write would write

This reads the tests as text; tests/witness/witness.py runs them and looks.

The rows come from `ndkstatus --json`: --program, or bin/ndkstatus in SOFTNDK_BUILD_DIR or build/.
--missing prints the halves that have no line, of all functions or of one.

Prints what is wrong, one line each, then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report, load

header_statuses = load("check-header-statuses.py")
provider_statuses = load("check-provider-statuses.py")
DOCUMENT = ROOT / "docs/statuses.md"

# Which functions post the requests of a kind.
POSTS = {
    "send": {"NdkSend", "NdkSendAndInvalidate"}, "receive": {"NdkReceive"}, "bind": {"NdkBind"},
    "invalidate": {"NdkInvalidate"}, "read": {"NdkRead"}, "write": {"NdkWrite"},
    "fast-register": {"NdkFastRegister"},
}

Line = collections.namedtuple("Line", "test reason where")


# ---- What must be listed, and what is ------------------------------------------------------------


def may_pend(function):
    return function["model"].startswith("may pend")


def halves(function, row):
    """The halves that a row of the table has."""
    if "requests" in row:
        return row["requests"]
    if row["how"] != "inline" or (row["status"] == "STATUS_SUCCESS" and may_pend(function)):
        return ("inline", "async")
    return ("inline",)


def completions(data):
    """Work completions in the shape of a function."""
    return {"name": "WorkCompletion", "model": "", "statuses": data["completions"]}


def read_lists(report):
    """(function, status, half) -> Line."""
    lines = {}
    for path in sorted((ROOT / "tests/status_tests").glob("*.list")):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = text.split("#", 1)[0].split()
            where = f"{path.relative_to(ROOT)}:{number}"
            if not words:
                continue
            proof = words[3:]
            good = (len(proof) > 1 if proof[:1] == ["-"] else
                    len(proof) == 1 and re.fullmatch(r"\w+:\w+", proof[0]))
            report.check(good, f"{where}: want `function status half program:test` or `function "
                               f"status half - reason`, have `{text.strip()}`")
            if not good:
                continue
            key = tuple(words[:3])
            report.check(key not in lines,
                         f"{where}: listed already in {lines[key].where if key in lines else ''}")
            lines[key] = (Line(None, " ".join(proof[1:]), where) if proof[0] == "-" else
                          Line(proof[0], None, where))
    return lines


def check_rows(report, functions, lines):
    wanted = set()
    for function in functions:
        for row in function["statuses"]:
            for half in halves(function, row):
                key = (function["name"], row["status"], half)
                wanted.add(key)
                report.check(key in lines, f"{' '.join(key)}: no line in tests/status_tests")
    for key, line in lines.items():
        report.check(key in wanted, f"{line.where}: {' '.join(key)} is not in the table")


# ---- The tests that are named --------------------------------------------------------------------


class Texts:
    """What a test program is made of: named pieces of C, looked up by name."""

    PIECE = re.compile(
        r"^(?:[A-Za-z_]\w*[ *]+)+\*?(?P<function>\w+)\((?:[^;{}]*?)\)\s*\n?\{\n.*?^\}"
        r"|^(?:[A-Za-z_]\w*[ *]+)+(?P<variable>\w+)(?:\[[^\]]*\])* = [^;]*;"
        r"|^[ \t]*#define (?P<macro>\w+)(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)

    def __init__(self, path):
        self.pieces = {}
        self.tests = set()
        for file in self.files(path):
            text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", file.read_text(encoding="utf-8"),
                          flags=re.DOTALL)
            for match in self.PIECE.finditer(text):
                name = match["function"] or match["variable"] or match["macro"]
                self.pieces.setdefault(name, set()).add(match.group())
            if file == path:
                for table in re.findall(r"struct CMUnitTest \w+\[\] = \{(.*?)\};", text, re.DOTALL):
                    self.tests |= set(re.findall(r"\w+\((\w+)", table))

    @staticmethod
    def files(path):
        """The file, the headers of tests it includes, and what tests share."""
        support = sorted((ROOT / "tests/support").glob("*.[ch]"))
        found = [path]
        for file in found:
            for name in re.findall(r'^#include "([^"]+)"', file.read_text(encoding="utf-8"),
                                   re.MULTILINE):
                beside = file.parent / pathlib.Path(name).name
                if beside.exists() and beside not in found and "test" in beside.name:
                    found.append(beside)
        return found + [file for file in support if file not in found]

    def reached(self, name):
        """All words of a piece and of the pieces it names."""
        words, todo, seen = set(), [name], set()
        while todo:
            piece = todo.pop()
            if piece in seen:
                continue
            seen.add(piece)
            for text in self.pieces.get(piece, ()):
                words |= set(re.findall(r"\w+", text))
            todo += [word for word in words if word in self.pieces and word not in seen]
        return words


def programs(report):
    """Name of a test program's file without .c -> path."""
    found = {}
    for path in sorted([*(ROOT / "src").rglob("*_test.c"),
                        *(ROOT / "tests/integration").glob("*_test.c")]):
        report.check(path.stem not in found, f"{path.relative_to(ROOT)}: its name is taken by "
                                             f"{found.get(path.stem)}")
        found[path.stem] = path
    return found


def check_tests(report, functions, lines):
    slots = collections.defaultdict(set)
    for (_, slot), kind in provider_statuses.slot_types().items():
        slots[kind].add(slot)
    types = {function["name"]: function.get("type") for function in functions}
    files = programs(report)
    texts, reached = {}, {}
    for (name, status, half), line in lines.items():
        if not line.test:
            continue
        program, test = line.test.split(":")
        report.check(program in files, f"{line.where}: no file {program}.c")
        if program not in files:
            continue
        text = texts.get(program) or texts.setdefault(program, Texts(files[program]))
        there = test in text.tests and test in text.pieces
        report.check(there, f"{line.where}: {program}.c has no test {test}")
        if not there:
            continue
        if line.test not in reached:
            reached[line.test] = text.reached(test)
        words = reached[line.test]
        report.check(status in words, f"{line.where}: {line.test} does not name {status}")
        report.check((slots[types.get(name)] or POSTS.get(half, set())) & words,
                     f"{line.where}: {line.test} does not name {name}")


# ---- docs/statuses.md ----------------------------------------------------------------------------

HEAD = """\
# Statuses of the NDK interface

Written by `python3 tests/check-status-tests.py --write`; do not edit, the sources are
`src/base/status_table.def` and `tests/status_tests/*.list`.

How a status comes: *inline* as the return value only; *both* is documented to come as the return
value or through the completion callback; *async-possible* is listed for a call that may pend, so it
may come either way. A `*` marks a code that NDKPI leaves to the provider and softndk chose.
`STATUS_PENDING` is a success code; `STATUS_BUFFER_OVERFLOW`, `STATUS_NO_MORE_ENTRIES` and
`STATUS_DEVICE_BUSY` are warnings, for which neither `NT_SUCCESS` nor `NT_ERROR` holds.

The last two columns of a function's table name the test, `program:function`, in which the status
comes as the return value, and the one in which it comes through the callback, or say why it cannot.
`-`: it has no such half. The list being open-ended needs no test. Where no cause makes a status come in
that half, `status_injected_test` or `status_injected_connect_test` asks for it (`SOFTNDK_FAIL`) and checks
what the consumer sees.
"""


def table(heading, rows):
    yield f"| {' | '.join(heading)} |"
    yield "|" + "---|" * len(heading)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def status_rows(data):
    lists_any = [f for f in data["functions"] if f["statuses"]]
    for status in data["statuses"]:
        name = status["name"]
        users = [f["name"] for f in lists_any if any(s["status"] == name for s in f["statuses"])]
        if len(users) == len(lists_any):
            users = ["every function that returns a status"]
        if any(w["status"] == name for w in data["completions"]):
            users.append("work completions")
        yield (f"`{name}`", f"`0x{status['value']:08X}`", status["meaning"], status["causes"],
               ", ".join(users))


def proof(function, row, half, lines):
    line = lines.get((function["name"], row["status"], half))
    if half not in halves(function, row):
        return "-"
    if not line:
        return "none"
    return f"`{line.test}`" if line.test else f"cannot: {line.reason}"


def completion_rows(data, lines):
    for row in completions(data)["statuses"]:
        when = row["when"]
        for kind in row["requests"]:
            yield f"`{row['status']}`", kind, when, proof(completions(data), row, kind, lines)
            when = '"'


def function_rows(function, lines):
    for row in function["statuses"]:
        yield (f"`{row['status']}`", row["how"] + "*" * row["ours"], row["when"],
               *(proof(function, row, half, lines) for half in ("inline", "async")))
    if "any_other" in function:
        yield "any other", function["any_other"], "the list is open-ended", "-", "-"


def document(data, lines):
    out = [HEAD, "## Statuses", ""]
    out += table(("Status", "Value", "Meaning", "Usual causes", "Returned by"), status_rows(data))
    out += ["", "## Work completions", "", "The `Status` of an `NDK_RESULT`, by the kind of request.",
            ""]
    out += table(("Status", "Request", "When", "Tested"), completion_rows(data, lines))
    out += ["", "## Functions"]
    for function in data["functions"]:
        irql = "= PASSIVE_LEVEL" if function["passive_only"] else "<= DISPATCH_LEVEL"
        out += ["", f"### {function['name']}", "",
                f"`{function['type']}` {function['gist']}. Slot {function['slot']}, IRQL {irql}, "
                f"since {function['since']}, {function['model']}. NDKPI reference "
                f"{function['section']}."]
        if function["statuses"]:
            out.append("")
            out += table(("Status", "How", "When", "Tested inline", "Tested async"),
                         function_rows(function, lines))
    return "\n".join(out) + "\n"


# ---- The command ---------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the ndkstatus to ask")
    parser.add_argument("--write", action="store_true", help="write docs/statuses.md")
    parser.add_argument("--missing", nargs="?", const="", metavar="NAME",
                        help="print the halves without a line, of all functions or of NAME")
    arguments = parser.parse_args()
    program = arguments.program or os.path.join(
        os.environ.get("SOFTNDK_BUILD_DIR") or ROOT / "build", "bin", "ndkstatus")

    data = json.loads(subprocess.run([program, "--json"], capture_output=True, text=True,
                                     timeout=60, check=True).stdout)
    functions = [completions(data)] + data["functions"]
    report = Report()
    lines = read_lists(report)
    if arguments.missing is not None:
        for function in functions:
            for row in function["statuses"]:
                for half in halves(function, row):
                    if (function["name"], row["status"], half) not in lines and \
                            arguments.missing in ("", function["name"]):
                        print(function["name"], row["status"], half)
        return 0
    check_rows(report, functions, lines)
    check_tests(report, functions, lines)
    text = document(data, lines)
    if arguments.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    report.check(DOCUMENT.read_text(encoding="utf-8") == text,
                 "docs/statuses.md is out of date: python3 tests/check-status-tests.py --write")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
