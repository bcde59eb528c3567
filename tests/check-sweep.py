#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says for each provider function which allocation-failure sweep covers it, or why none does.

    check-sweep.py [-v]

The list is tests/sweep.list, a line a function (several if several scenarios belong to it); #
begins a comment:

    NdkCreateCq alloc_objects_test: NdkCreateCq    program: scenario
    NdkArmCq    - the reason why it needs no memory
    (reason_keep) alloc_more_test: a refusal's sentence
    (engine_x)  - the reason why what it allocates is not its caller's

A name in parentheses is a C function that many others call: it is swept once, and not looked into
on behalf of its callers.

 - every function of src/base/status_table.def has a line, no line is about anything else
 - the scenario exists, and what it runs, helpers of tests/support included, calls the function
 - a function with a reason reaches no allocation in src/, one with a scenario reaches one

Reads src/ as text. Reached is what a function calls, through the tables of functions too (every
function that is anywhere the value of such a member); what it hands over to run later, in a turn of
its own, is not its own. -v prints the way to the allocation.

Prints what is wrong, one line each, then `N checks, M failed`; exit status 1 if any failed.
"""

import argparse
import collections
import re
import sys

sys.dont_write_bytecode = True
from checks import ROOT, Report, load

header_statuses = load("check-header-statuses.py")
provider_statuses = load("check-provider-statuses.py")
LIST = ROOT / "tests/sweep.list"

ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "strdup", "strndup",
              "asprintf", "vasprintf", "open_memstream", "fopen", "opendir", "getaddrinfo",
              "pthread_create"}
DEFINITION = re.compile(r"^((?:[A-Za-z_]\w*[ *]+)+)\*?(\w+)\(([^;{}]*?)\)\s*\n\{\n(.*?)^\}",
                        re.DOTALL | re.MULTILINE)
SCENARIO = re.compile(r'\{\s*"([^"]+)",\s*\w+,\s*(\w+),')

Line = collections.namedtuple("Line", "program scenario reason where")


class Code:
    """Functions by name, and what each calls."""

    def __init__(self, paths):
        self.bodies = collections.defaultdict(list)
        self.members = collections.defaultdict(set)
        for path in paths:
            text = provider_statuses.strip(path.read_text())
            for match in DEFINITION.finditer(text):
                self.bodies[match.group(2)].append((path, match.group(4)))
            for member, value in re.findall(r"\.(\w+) = (\w+)\b", text):
                self.members[member].add(value)

    def callees(self, name, near=None):
        """near: the file that calls; static functions of others are not seen from there."""
        bodies = self.bodies.get(name, ())
        own = [b for b in bodies if b[0] == near]
        for path, body in own or bodies:
            for through, callee in re.findall(r"(->|\.)?\s*\b([A-Za-z_]\w*)\(", body):
                for one in self.members.get(callee, ()) if through else (callee,):
                    yield one, path

    def way(self, name, targets, cut=()):
        """The calls that lead from a function to one of targets, or None."""
        seen, queue = set(), collections.deque([(name, None, (name,))])
        while queue:
            at, near, trail = queue.popleft()
            if at in targets:
                return trail
            if (at, near) in seen or (at in cut and at != name):
                continue
            seen.add((at, near))
            queue.extend((c, path, trail + (c,)) for c, path in self.callees(at, near))
        return None

    def text(self, name):
        """All that is reached from a function."""
        seen, queue, text = set(), [name], []
        while queue:
            at = queue.pop()
            if at not in seen:
                seen.add(at)
                for _, body in self.bodies.get(at, ()):
                    text.append(body)
                    queue.extend(w for w in re.findall(r"\b[a-z_]\w*\b", body) if w in self.bodies)
        return "\n".join(text)


def read_list(report):
    """Name -> [Line]."""
    lines = collections.defaultdict(list)
    for number, text in enumerate(LIST.read_text(encoding="utf-8").splitlines(), 1):
        text = text.split("#", 1)[0].strip()
        where = f"{LIST.relative_to(ROOT)}:{number}"
        if not text:
            continue
        match = re.fullmatch(r"(\w+|\(\w+\))\s+(?:- (?P<reason>\S.*)|(\w+): (\S.*))", text)
        report.check(match, f"{where}: want `function program: scenario` or `function - reason`, "
                            f"have `{text}`")
        if match:
            lines[match.group(1)].append(Line(match.group(3), match.group(4),
                                              match.group("reason"), where))
    return lines


def read_scenarios():
    """(program, scenario) -> what its act runs."""
    support = sorted((ROOT / "tests/support").glob("*.[ch]"))
    scenarios = {}
    for path in sorted((ROOT / "tests/sweep").glob("*_test.c")):
        code = Code([path] + support)
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.DOTALL)
        for name, act in SCENARIO.findall(text):
            scenarios[(path.stem, name)] = code.text(act)
    return scenarios


def implementations():
    """Function of the table -> the C functions behind its slots, and the slots' names."""
    functions, _ = header_statuses.read_table()
    by_type = {f.type: f.name for f in functions.values()}
    types = provider_statuses.slot_types()
    behind = {name: (set(), set()) for name in functions}
    for table, slot, c_name in provider_statuses.Sources().slots:
        name = by_type.get(types.get((table, slot)))
        if name:
            behind[name][0].add(c_name)
            behind[name][1].add(slot)
    return behind


def check_line(report, line, name, scenarios, slots):
    """slots: one of which the scenario must call; None: a C function is meant, any call will do."""
    if not line.program:
        return
    text = scenarios.get((line.program, line.scenario))
    report.check(text is not None,
                 f"{line.where}: tests/sweep/{line.program}.c has no `{line.scenario}`")
    if text is not None and slots:
        report.check(any(re.search(rf"\b{slot}\b", text) for slot in slots),
                     f"{line.where}: `{line.scenario}` does not call {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", action="store_true", help="print the ways to the allocations")
    arguments = parser.parse_args()

    report = Report()
    lines = read_list(report)
    scenarios = read_scenarios()
    code = Code(p for p in sorted((ROOT / "src").rglob("*.[ch]")) if not p.stem.endswith("_test"))
    behind = implementations()
    cut = {name[1:-1] for name in lines if name.startswith("(")}

    report.check(len(behind) == 53, f"{len(behind)} functions in the table, need 53")
    for name in sorted(cut):
        report.check(name in code.bodies, f"tests/sweep.list: there is no function {name} in src/")
        report.check(code.way(name, ALLOCATORS, cut), f"tests/sweep.list: ({name}) reaches no "
                                                      "allocation: the line has no purpose")
    for name in sorted(set(lines) - set(behind)):
        report.check(name[1:-1] in cut, f"{lines[name][0].where}: {name} is no provider function")
    for name, mine in lines.items():
        for line in mine:
            check_line(report, line, name, scenarios, behind[name][1] if name in behind else None)
    for name, (c_names, _) in behind.items():
        mine = lines.get(name, [])
        report.check(mine, f"{name}: no line: neither a sweep nor a reason why it needs none")
        report.check(c_names, f"{name}: no slot of src/provider has it")
        ways = [way for c in sorted(c_names) if (way := code.way(c, ALLOCATORS, cut))]
        if arguments.v:
            print(f"{name}: {' > '.join(ways[0]) if ways else 'no allocation'}")
        if any(line.reason for line in mine):
            report.check(len(mine) == 1, f"{name}: a reason and a scenario")
            report.check(not ways, f"{name}: allocates, and no sweep covers it: "
                                   f"{' > '.join(ways[0]) if ways else ''}")
        elif mine:
            report.check(ways, f"{name}: reaches no allocation: say why instead of a scenario")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
