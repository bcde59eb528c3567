#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says which tests stand for each row of wire behaviour and of malformed input, in
docs/wire-conformance.md.

    check-wire-rows.py [--write] [--missing] [--fill]

The list is tests/wire_rows.list, lines of

    W-7 | active | an FPDU in one piece with the Reply | wire_connect_test, mpa_test
    W-60 | - | markers: where they stand | - the reason why there is no test

 - the rows W-1 to W-121 and M-1 to M-99 have one line each
 - a test that is named speaks of the row: in a string ("M-22 CRC bit"), or in the name of one of its
   cmocka tests (W_50_W_51_pads, w28_to_w32_responder_chooses_rtr)
 - a test that speaks of a row is named in its line
 - docs/wire-conformance.md is what --write would write

--missing prints the rows without a test or reason; --fill writes the tests found into the list.
Prints what is wrong, one line each, then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import collections
import re
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report
LIST = ROOT / "tests/wire_rows.list"
DOCUMENT = ROOT / "docs/wire-conformance.md"
LAST = {"W": 121, "M": 99}
ROLES = ("active", "passive", "both", "-")

Row = collections.namedtuple("Row", "name role what tests reason section where")

STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
IN_STRING = re.compile(r"\b([WM])-(\d+)\b")
TEST = re.compile(r"cmocka_unit_test(?:_\w+)?\(\s*(\w+)")
IN_NAME = re.compile(r"(?:^|_)([wmWM])_?(\d+)(?=_|$)")
RANGE = re.compile(r"(?:^|_)([wm])(\d+)_to_[wm](\d+)(?=_|$)")


def spoken_of(text):
    """The rows that a test's text names, and its words about each."""
    text = COMMENT.sub(" ", text)
    rows = collections.defaultdict(list)
    for string in STRING.findall(text):
        for kind, number in IN_STRING.findall(string):
            rows[f"{kind}-{number}"].append(string[1:-1])
    for name in TEST.findall(text):
        for kind, number in IN_NAME.findall(name):
            rows[f"{kind.upper()}-{number}"].append(name)
        for kind, first, last in RANGE.findall(name):
            for number in range(int(first), int(last) + 1):
                rows[f"{kind.upper()}-{number}"].append(name)
    return rows


def read_tests():
    """Program -> row -> its words."""
    tests = {}
    for pattern in ("src/*/*_test.c", "tests/integration/*_test.c", "tests/sweep/*_test.c"):
        for path in sorted(ROOT.glob(pattern)):
            tests[path.stem] = spoken_of(path.read_text(encoding="utf-8"))
    for pattern in ("tests/scripts/*", "tests/interop/*", "tests/fuzz/*"):
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                found = IN_STRING.findall(path.read_text(encoding="utf-8", errors="replace"))
                tests[path.name] = {f"{kind}-{number}": [] for kind, number in found}
    return tests


def read_list(report):
    rows, section = {}, ""
    for number, text in enumerate(LIST.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{LIST.relative_to(ROOT)}:{number}"
        if text.startswith("# ----"):
            section = text.strip("# -")
        if not text.strip() or text.startswith("#"):
            continue
        fields = [field.strip() for field in text.split("|")]
        name = fields[0]
        good = (len(fields) in (3, 4) and re.fullmatch(r"[WM]-\d+", name)
                and fields[1] in ROLES and fields[2])
        report.check(good, f"{where}: want `row | role | what | tests or - reason`")
        if not good:
            continue
        proof = fields[3] if len(fields) == 4 else ""
        reason = proof[2:] if proof.startswith("- ") else None
        tests = [] if reason or not proof else [test.strip() for test in proof.split(",")]
        report.check(name not in rows, f"{where}: {name} has a line already")
        rows[name] = Row(name, fields[1], fields[2], tests, reason, section, where)
    return rows


def check(report, rows, tests):
    for kind, last in LAST.items():
        for number in range(1, last + 1):
            report.check(f"{kind}-{number}" in rows, f"{kind}-{number}: no line in the list")
    for row in rows.values():
        report.check(row.tests or row.reason, f"{row.where}: {row.name} has neither test nor reason")
        for test in row.tests:
            report.check(row.name in tests.get(test, {}),
                         f"{row.where}: {test} does not speak of {row.name}")
    for test, found in tests.items():
        for name in found:
            report.check(name in rows, f"{test} speaks of {name}, which there is not")
            report.check(name not in rows or test in rows[name].tests,
                         f"{test} speaks of {name}, whose line does not name it")


HEAD = """\
<!-- SPDX-License-Identifier: MIT -->
# What is right on the wire, and which test says so

Written by `python3 tests/check-wire-rows.py --write`; do not edit, the source is `tests/wire_rows.list`.

Each row is one demand of the documents (RFC 5044, 5041, 5040, 6581, 7306) or of a peer that exists: W
rows say what an endpoint does, M rows what it does with input that is malformed or hostile. The role is
that of our end: active connects, passive listens. Tests are named by their program, `src/*/NAME.c` or
`tests/integration/NAME.c`, or scripts in `tests/scripts` and `tests/interop` (docs/interop.md); inside it
a row's number stands in the name of the test or of its table row.

The programs `wire_*_test` are raw-socket peers against a whole end: the M rows of an established
connection are played against it in both roles, in one piece and octet by octet, and so are frames of
the startup that end an attempt; W rows of role "both" are played in both roles, too. Each time the
Terminate is compared octet for octet, memory around the regions is compared, every request is
accounted for, and a second connection goes on.
"""


def document(rows, tests):
    out, section = [HEAD], None
    for row in rows.values():
        if row.section != section:
            section = row.section
            out += ["", f"## {section}", "", "| Row | Role | What | Tests |", "|---|---|---|---|"]
        proof = (", ".join(f"`{test}`" for test in row.tests) if row.tests
                 else f"none: {row.reason}" if row.reason else "not yet")
        out.append(f"| {row.name} | {row.role} | {row.what} | {proof} |")
    return "\n".join(out) + "\n"


def fill(rows, tests):
    lines = []
    for text in LIST.read_text(encoding="utf-8").splitlines():
        name = text.split("|")[0].strip()
        if name in rows and not rows[name].reason:
            found = [test for test, spoken in tests.items() if name in spoken]
            found.sort(key=lambda test: (not test.startswith("wire_"), test))
            fields = [field.strip() for field in text.split("|")[:3]]
            text = " | ".join(fields + ([", ".join(found)] if found else []))
        lines.append(text)
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/wire-conformance.md")
    parser.add_argument("--missing", action="store_true", help="print the rows without a test")
    parser.add_argument("--fill", action="store_true", help="write the tests found into the list")
    arguments = parser.parse_args()
    report = Report()
    tests = read_tests()
    rows = read_list(report)
    if arguments.fill:
        fill(rows, tests)
        rows = read_list(report)
    if arguments.missing:
        print("\n".join(f"{row.name} {row.what}" for row in rows.values()
                        if not row.tests and not row.reason))
        return 0
    check(report, rows, tests)
    text = document(rows, tests)
    if arguments.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    report.check(DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == text,
                 "docs/wire-conformance.md is out of date: python3 tests/check-wire-rows.py --write")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
