#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares everything that speaks of statuses with src/base/status_table.def.

    check-header-statuses.py [--program PATH]

 - each function's comment in include/ndk/ndkpi*.h: slot, IRQL, version, model, section, and the
   statuses in the order of the table, with the same marking and the same words
 - the statuses of the table are those of ntstatus.h
 - the slots of the table: the dispatch structures of the headers have that type at that index, and
   no slot is missing from the table
 - ndkstatus answers and refuses as its help says. The program is --program, or bin/ndkstatus in
   SOFTNDK_BUILD_DIR; with neither, this part is left out, with a notice.

Prints what differs, one line each, then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report

HOW = {"INLINE": "inline", "BOTH": "both", "ASYNC_POSSIBLE": "async-possible"}
MODEL = {
    "CREATE": "May pend (create)",
    "CLOSE": "May pend (close)",
    "REQUEST": "May pend (request)",
    "WORK": "Work request, never pends",
    "SYNC": "Never pends",
    "VALUE": "Returns a value, cannot fail",
    "VOID": "Returns nothing, cannot fail",
}
IRQL = {"DISPATCH": "<= DISPATCH_LEVEL", "PASSIVE": "= PASSIVE_LEVEL"}

Function = collections.namedtuple("Function", "name type slot section irql since model statuses")
Status = collections.namedtuple("Status", "name how when")


def table_rows(text):
    """The rows of the table: (macro, [arguments]), string literals joined and unquoted."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    token = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d+|\||[(),]')
    macro, arguments, current = None, [], []
    for match in token.finditer(text):
        word = match.group()
        if macro is None:
            macro = word
        elif word == "(":
            arguments, current = [], []
        elif word in ",)":
            strings = [w[1:-1] for w in current if w[0] == '"']
            arguments.append("".join(strings) if strings else " ".join(current))
            current = []
            if word == ")":
                yield macro, arguments
                macro = None
        else:
            current.append(word)


def read_table():
    """The functions of the table, and the names of all statuses it knows."""
    functions = {}
    names = []
    for macro, row in table_rows((ROOT / "src/base/status_table.def").read_text()):
        if macro in ("NDK_MEANING", "NDK_NAME"):
            names.append(row[0])
        if macro == "NDK_FUNCTION":
            name, kind, slot, section, irql, since, model, _gist = row
            functions[name] = Function(name, kind, slot, section, irql, since, model, [])
        elif macro == "NDK_STATUS":
            name, status, how, source, when = row
            how = HOW[how] + ("*" if source == "OURS" else "")
            functions[name].statuses.append(Status(status, how, when))
        elif macro == "NDK_OTHER":
            functions[row[0]].statuses.append(
                Status("any other", HOW[row[1]], "the list is open-ended"))
    return functions, names


def comment_facts(comment):
    """(head line or None, statuses, section or None) of a comment's text."""
    lines = [re.sub(r"^\s*\*? ?", "", line.rstrip()) for line in comment.splitlines()]
    text = "\n".join(lines)
    head = re.search(r"^Slot (.*?)\. IRQL (.*?)\. Since (\S+)\. (.*?)\.$", text, re.MULTILINE)
    section = re.search(r"NDKPI reference (\d+\.\d+)\.$", text, re.MULTILINE)
    statuses = []
    inside = False
    for line in lines:
        if line == "Statuses:":
            inside = True
        elif line.startswith("NDKPI reference"):
            inside = False
        elif inside:
            match = re.match(r"  (STATUS_\w+|any other) +(\S+) +(.*)", line)
            if match:
                statuses.append(Status(*match.groups()))
            else:
                last = statuses.pop()
                statuses.append(last._replace(when=f"{last.when} {line.strip()}"))
    return (head.groups() if head else None, statuses, section.group(1) if section else None)


def check_comments(report, functions, headers):
    declared = {}
    pattern = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*typedef\b([^;]*?)\(\s*\*\s*(NDK_FN_\w+)\s*\)",
                         re.DOTALL)
    for match in pattern.finditer(headers):
        declared[match.group(3)] = comment_facts(match.group(1))
    for function in functions.values():
        where = f"{function.type} in the header"
        if function.type not in declared:
            report.check(False, f"{where}: not declared with a comment")
            continue
        head, statuses, section = declared[function.type]
        want = (function.slot, IRQL[function.irql], function.since, MODEL[function.model])
        report.equal(head, want, f"{where}: first line")
        report.equal(section, function.section, f"{where}: section")
        report.equal([s.name for s in statuses], [s.name for s in function.statuses],
                     f"{where}: statuses")
        for have, need in zip(statuses, function.statuses):
            report.equal(have, need, f"{where}: {need.name}")


def check_slots(report, functions, headers):
    slots = {}  # (table, index) -> type
    for name, body in re.findall(r"struct _NDK_(\w+)_DISPATCH \{(.*?)\n\}", headers, re.DOTALL):
        table = name.lower().replace("_", " ")
        for index, kind in enumerate(re.findall(r"^\s*(NDK_FN_\w+)\s+\w+;", body, re.MULTILINE)):
            slots[(table, index)] = kind
    report.equal(len(slots), 70, "slots in all tables")
    covered = {}
    for function in functions.values():
        match = re.fullmatch(r"([a-z ]+)\[(\d+)\]", function.slot)
        if match:
            covered[(match.group(1), int(match.group(2)))] = function.type
    for table in {table for table, _ in slots}:
        first = 0 if table == "adapter" else 1
        covered[(table, first)] = "NDK_FN_QUERY_EXTENSION_INTERFACE"
        if first:
            covered[(table, 0)] = "NDK_FN_CLOSE_OBJECT"
    for place in sorted(set(slots) | set(covered)):
        report.equal(covered.get(place), slots.get(place), f"{place[0]}[{place[1]}]")


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def check_program(report, functions, program):
    status, text, _ = run(program, "--json")
    report.equal(status, 0, "ndkstatus --json")
    for have in json.loads(text)["functions"]:
        rows = [(s["status"], s["how"] + "*" * s["ours"], s["when"]) for s in have["statuses"]]
        if "any_other" in have:
            rows.append(("any other", have["any_other"], "the list is open-ended"))
        want = functions[have["name"]]
        report.equal((have["type"], have["slot"], rows),
                     (want.type, want.slot, [tuple(s) for s in want.statuses]),
                     f"ndkstatus --json: {have['name']}")

    answers = {run(program, spelling)[:2] for spelling in
               ("0xC0000141", "0xc0000141", "c0000141", "3221225793", "-1073741503",
                "STATUS_INVALID_ADDRESS", "status_invalid_address", "invalid_address")}
    report.equal(len(answers), 1, "ndkstatus: answers to eight spellings of one status")
    status, text = answers.pop()
    report.equal(status, 0, "ndkstatus 0xC0000141")
    listing = [f.name for f in functions.values()
               if any(s.name == "STATUS_INVALID_ADDRESS" for s in f.statuses)]
    report.check(listing and all(name in text for name in listing),
                 "ndkstatus 0xC0000141 names the functions that return it")
    report.check("NdkFlush" not in text, "ndkstatus 0xC0000141 names others")

    status, text, _ = run(program, "--functions")
    report.equal((status, len(text.splitlines())), (0, len(functions)), "ndkstatus --functions")
    for function in functions.values():
        status, text, _ = run(program, "--functions", function.name.lower())
        have = re.findall(r"^  (?:0x\w{8}|          ) (any other|\S+) +(\S+) ", text, re.MULTILINE)
        report.equal((status, have), (0, [(s.name, s.how) for s in function.statuses]),
                     f"ndkstatus --functions {function.name}")

    report.equal(run(program, "--list")[0], 0, "ndkstatus --list")
    report.equal(run(program, "-h")[0], 0, "ndkstatus -h")
    report.equal(run(program, "0xC0000999")[0], 1, "ndkstatus with a number NDK does not use")
    report.equal(run(program, "no_memory")[0], 1, "ndkstatus with a name NDK does not use")
    report.equal(run(program, "--reason", "0")[:2],
                 (0, "0x00000000 no reason given\n"), "ndkstatus --reason 0")
    for wrong in ([], ["bogus"], ["--bogus"], ["0x1C0000005"], ["-2147483649"], ["0x"], [""],
                  ["--list", "x"], ["--functions", "NdkBogus"], ["--reason"], ["--reason", "x"],
                  ["invalid_address", "bogus"]):
        status, _, complaint = run(program, *wrong)
        report.equal(status, 2, f"ndkstatus {wrong}: exit status")
        report.check(complaint.strip() != "", f"ndkstatus {wrong}: says nothing on stderr")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the ndkstatus to ask")
    arguments = parser.parse_args()
    program = arguments.program
    if not program and os.environ.get("SOFTNDK_BUILD_DIR"):
        program = os.path.join(os.environ["SOFTNDK_BUILD_DIR"], "bin", "ndkstatus")

    report = Report()
    functions, names = read_table()
    headers = "".join(p.read_text() for p in sorted((ROOT / "include/ndk").glob("ndkpi*.h")))
    report.equal(len(functions), 53, "functions in the table")
    defined = re.findall(r"^#define (STATUS_\w+)",
                         (ROOT / "include/nt/ntstatus.h").read_text(), re.MULTILINE)
    report.equal(sorted(names), sorted(defined), "statuses of the table and of ntstatus.h")
    check_comments(report, functions, headers)
    check_slots(report, functions, headers)
    if program and not os.access(program, os.X_OK):
        report.check(False, f"{program} is not there")
    elif program:
        check_program(report, functions, program)
    else:
        print("notice: no ndkstatus to ask (--program), its answers are unchecked")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
