#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says which test stands for each cell of the tables in docs/connections.md, in
docs/connection-tests.md.

    check-connection-cells.py [--write] [--missing]

A table counts if `<!-- cells: NAME -->` stands before it; `<!-- cells: NAME, 2 -->`: its first two
columns are labels, else the first alone. The list is tests/connection_cells.list, lines of

    calls  | NEW ; DECIDE | Reject | machine_calls_test:in_new, connect_accept_test:reject_in_wrong_states
    events | CONNECTING   | *      | - the reason why there is nothing to test

 - every cell of every table has exactly one line, and every line is about cells
 - every test named exists: a function in its program's table of cmocka tests
 - a test of the table `calls` names the slots of its column
 - docs/connection-tests.md is what --write would write

--missing prints the cells without a line. Prints what is wrong, one line each, then
`N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import collections
import re
import sys

sys.dont_write_bytecode = True
from checks import ROOT, load
status_tests = load("check-status-tests.py")
PAGE = ROOT / "docs/connections.md"
LIST = ROOT / "tests/connection_cells.list"
DOCUMENT = ROOT / "docs/connection-tests.md"

# What a test must name that stands for a cell of a column of `calls`.
SLOTS = {
    "Connect": ["NdkConnect", "NdkConnectWithSharedEndpoint"],
    "CompleteConnect": ["NdkCompleteConnect", "NdkCompleteConnectEx"],
    "Accept": ["NdkAccept", "NdkAcceptEx"],
    "Reject": ["NdkReject"],
    "Disconnect": ["NdkDisconnect"],
    "Send, Write, Read": ["NdkSend", "NdkWrite", "NdkRead"],
    "Receive, Flush": ["NdkReceive", "NdkFlush"],
    "connection data, addresses": ["NdkGetConnectionData", "NdkGetLocalAddress",
                                   "NdkGetPeerAddress"],
    "Close: here, then at the peer": ["NdkCloseConnector", "NdkCloseListener"],
}

Table = collections.namedtuple("Table", "rows columns cells")
Line = collections.namedtuple("Line", "tests reason where")


def cells_of(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def read_tables():
    """Name -> its rows and columns in order, and what stands in each cell."""
    tables = {}
    mark = r"<!-- cells: (\w+)(?:, (\d))? -->\n((?:\|[^\n]*\n)+)"
    for name, labels, text in re.findall(mark, PAGE.read_text(encoding="utf-8")):
        head, _, *body = [cells_of(row) for row in text.splitlines()]
        labels = int(labels or 1)
        table = tables[name] = Table([row[0] for row in body], head[labels:], {})
        for row in body:
            for column, cell in zip(head[labels:], row[labels:], strict=True):
                table.cells[row[0], column] = cell
    return tables


def names(text, all_of, report, where):
    if text == "*":
        return list(all_of)
    found = [name.strip() for name in text.split(" ; ")]
    for name in found:
        report.check(name in all_of, f"{where}: the table has no `{name}`")
    return found


def read_list(report, tables):
    """(table, row, column) -> Line."""
    lines = {}
    for number, text in enumerate(LIST.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{LIST.relative_to(ROOT)}:{number}"
        if not text.strip() or text.startswith("#"):
            continue
        fields = [field.strip() for field in text.split("|")]
        good = len(fields) == 4 and fields[0] in tables
        report.check(good, f"{where}: want `table | rows | columns | tests or - reason`")
        if not good:
            continue
        proof = fields[3]
        tests = [] if proof.startswith("- ") else [test.strip() for test in proof.split(",")]
        for test in tests:
            report.check(re.fullmatch(r"\w+:\w+", test), f"{where}: `{test}` is no program:test")
        line = Line(tests, None if tests else proof[2:], where)
        table = tables[fields[0]]
        for row in names(fields[1], table.rows, report, where):
            for column in names(fields[2], table.columns, report, where):
                key = (fields[0], row, column)
                report.check(key not in lines, f"{where}: {' | '.join(key)} stands in "
                                               f"{lines[key].where if key in lines else ''}, too")
                lines.setdefault(key, line)
    return lines


def check_tests(report, lines):
    files = status_tests.programs(report)
    texts = {}
    for (table, _, column), line in lines.items():
        reached = set()
        for test in line.tests:
            program, _, function = test.partition(":")
            report.check(program in files, f"{line.where}: no file {program}.c")
            if program not in files:
                continue
            text = texts.get(program) or texts.setdefault(program,
                                                          status_tests.Texts(files[program]))
            report.check(function in text.tests and function in text.pieces,
                         f"{line.where}: {program}.c has no test {function}")
            if table == "calls":
                reached |= text.reached(function)
        wanted = SLOTS[column] if table == "calls" and line.tests else []
        if column.startswith("Close"):
            wanted = [name for name in wanted if name in reached] or wanted
        for name in wanted:
            report.check(name in reached, f"{line.where}: none of its tests names {name}")


HEAD = """\
<!-- SPDX-License-Identifier: MIT -->
# Which test stands for which cell

Written by `python3 tests/check-connection-cells.py --write`; do not edit, the sources are the tables of
[connections.md](connections.md) and `tests/connection_cells.list`. Tests are named `program:function`; the
program is the name of its file without `.c`, in `tests/integration` or beside what it tests in `src`.
"""


def document(tables, lines):
    out = [HEAD]
    for name, table in tables.items():
        out += [f"## {name}", "", "| | | Cell | Tests |", "|---|---|---|---|"]
        for (row, column), cell in table.cells.items():
            line = lines.get((name, row, column))
            proof = "not yet" if line is None else (
                ", ".join(f"`{test}`" for test in line.tests) or f"none: {line.reason}")
            out.append(f"| {row} | {column} | {cell} | {proof} |")
        out.append("")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/connection-tests.md")
    parser.add_argument("--missing", action="store_true", help="print the cells without a line")
    arguments = parser.parse_args()
    report = status_tests.header_statuses.Report()
    tables = read_tables()
    lines = read_list(report, tables)
    missing = [(name, *key) for name, table in tables.items() for key in table.cells
               if (name, *key) not in lines]
    if arguments.missing:
        print("\n".join(" | ".join(key) for key in missing))
        return 0
    report.check(len(tables) >= 7, "docs/connections.md: its tables are not marked")
    for name, table in tables.items():
        report.check(len(set(table.rows)) == len(table.rows), f"{name}: two rows of one name")
        for key, cell in table.cells.items():
            report.check(cell, f"docs/connections.md: {name} | {' | '.join(key)} is empty")
    for key in missing:
        report.check(False, f"{' | '.join(key)}: no line in tests/connection_cells.list")
    report.checks += len(lines)
    check_tests(report, lines)
    text = document(tables, lines)
    if arguments.write:
        DOCUMENT.write_text(text, encoding="utf-8")
    report.check(DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == text,
                 "docs/connection-tests.md is out of date: "
                 "python3 tests/check-connection-cells.py --write")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
