#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py [options] - what TCP gives here, what softndk gives, what the peers give, side by side.

In a private network namespace (root: unshare -n, others: unshare -rn), server on CPU 0, client on
CPU 1. A round takes every row once, in some passes: floor, softndk, bounds, peers, floor; the medians
of the passes count. Rounds whose two floors differ by more than a quarter are dropped, and made up
for by further rounds, up to a limit. The method, the machine and the last table: docs/performance.md.

A row below its target is no failure. The exit status is 1 if something could not be measured."""

import argparse
import json
import os
import pathlib
import sys
import time

import figures
import machine
from pairs import Failed, Programs
from rows import ROWS

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, MINUTES = 10, 60


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="rows: " + ", ".join(row.name for row in ROWS))
    parser.add_argument("--rows", metavar="NAME[,NAME...]", help="only these; NAME* takes several")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds to keep ({ROUNDS})")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N",
                        help=f"nothing more is measured after that ({MINUTES})")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: does everything run?")
    parser.add_argument("--no-peers", action="store_true", help="floor and softndk alone")
    parser.add_argument("--here", action="store_true",
                        help="in the network namespace of the caller")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build",
                        help="where the programs are (build)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="everything measured")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help="the table; replaces what stands between the marks if FILE has them")
    parser.add_argument("--compare", nargs=2, type=pathlib.Path, metavar="JSON",
                        help="measure nothing: how far two runs (of --json) are apart")
    arguments = parser.parse_args()
    if arguments.rounds is None:
        arguments.rounds = 1 if arguments.quick else ROUNDS
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: at least 1 is needed")
    for path in filter(None, (arguments.json, arguments.markdown)):
        if not writable(path): # not known only when all is measured
            parser.error(f"{path}: cannot be written")
    arguments.chosen = choose(parser, arguments.rows)
    return arguments


def writable(path):
    if path.exists():
        return path.is_file() and os.access(path, os.W_OK)
    parent = next(one for one in path.absolute().parents if one.exists())
    return parent.is_dir() and os.access(parent, os.W_OK)


def choose(parser, names):
    if not names:
        return ROWS
    chosen = []
    for name in names.split(","):
        found = [row for row in ROWS if row.name == name or
                 (name.endswith("*") and row.name.startswith(name[:-1]))]
        if not found:
            parser.error(f"--rows {name}: need one of {', '.join(row.name for row in ROWS)}")
        chosen += [row for row in found if row not in chosen]
    return chosen


# ---- measuring -----------------------------------------------------------------------------------

class Session:
    """All rounds of all rows."""

    def __init__(self, programs, arguments):
        self.programs, self.arguments = programs, arguments
        self.rounds = {row: [] for row in arguments.chosen}
        self.failures = {} # text: how often
        self.skipped = {}  # program: reason
        self.end = time.monotonic() + 60 * arguments.minutes

    def figure(self, row, what, measure):
        """A figure, or None with the reason kept."""
        try:
            return measure(self.programs)
        except Failed as error:
            text = f"{row.name}, {what}: {error}"
            self.failures[text] = self.failures.get(text, 0) + 1
            print(f"bench: {text}", file=sys.stderr)
            return None

    def peers(self, row):
        """Those of the row that are here."""
        if self.arguments.no_peers:
            return {}
        here = {}
        for name, measure in row.peers.items():
            program = {"fabric": "bench/fabric", "fi_pingpong": name}.get(name, "ucx_perftest")
            why_not = self.programs.why_not(program)
            if why_not:
                self.skipped[program] = why_not
            else:
                here[name] = measure
        return here

    def round(self, row):
        """Passes, so that a slow phase of the machine hits all parts or none. A part that failed
        in one pass has the figures of the others."""
        parts = [("softndk", row.softndk), *row.bounds.items(), *self.peers(row).items()]
        if row.floor:
            parts = [("floor", row.floor), *parts, ("floor again", row.floor)]
        values = {what: [] for what, _ in parts}
        for _ in range(1 if row.once else self.programs.passes * row.often):
            for what, measure in parts:
                value = self.figure(row, what, measure)
                if value is not None:
                    values[what].append(value)
        floors = [values[what] for what in ("floor", "floor again") if what in values]
        one = figures.Round(floors, values["softndk"],
                            {name: values[name] for name in row.peers if name in values},
                            {name: values[name] for name in row.bounds})
        self.rounds[row].append(one)
        return one

    def wants(self, row):
        """Whether the row lacks rounds: a failure is tried again as a dropped round is."""
        have = self.rounds[row]
        need = 1 if row.once else self.arguments.rounds
        most = 1 if self.arguments.quick or row.once else 2 * need
        return sum(one.kept for one in have) < need and len(have) < most

    def run(self):
        number = 0
        while time.monotonic() < self.end:
            rows = [row for row in self.rounds if self.wants(row)]
            if not rows:
                return
            number += 1
            for row in rows:
                if time.monotonic() >= self.end:
                    print(f"bench: {self.arguments.minutes:g} minutes are over", file=sys.stderr)
                    return
                self.tell(number, row, self.round(row))

    @staticmethod
    def tell(number, row, one):
        values = [figures.number(value) for value in
                  [*one.floors[:1], one.softndk, *one.bounds.values(), *one.peers.values(),
                   *one.floors[1:]]]
        print(f"round {number}, {row.name}: {' '.join(values)} {row.unit}"
              f"{'' if one.kept else ' (dropped)'}", file=sys.stderr, flush=True)


# ---- results -------------------------------------------------------------------------------------

def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def report(session, about, steal):
    arguments = session.arguments
    summaries = [figures.Summary(row, rounds) for row, rounds in session.rounds.items()]
    notes = [f"left out: {reason}" for reason in session.skipped.values()]
    notes += [f"failed: {text} ({count} times)" for text, count in session.failures.items()]
    notes.append(f"time taken by the hypervisor: {100 * steal:.2f} %")
    text = machine.head(about, session.programs.limits, notes) + "\n" + figures.table(summaries)
    bounds = figures.bounds_table(summaries)
    text += "\n" + bounds if bounds else ""
    print(text)
    if arguments.json:
        write(arguments.json, json.dumps(
            {"about": about, "limits": session.programs.limits, "steal": steal,
             "skipped": session.skipped, "failures": session.failures,
             "rows": [one.data() for one in summaries]}, indent=1) + "\n")
    if arguments.markdown:
        old = arguments.markdown.read_text(encoding="utf-8") if arguments.markdown.exists() else ""
        write(arguments.markdown, figures.place(old, text))
    return 1 if any(not one.kept and not one.dropped for one in summaries) else 0


def compare(paths):
    """Two files of --json. That they are far apart is no failure."""
    runs = []
    for path in paths:
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
            runs.append([{"row": str(row["row"]), "best_peer": row.get("best_peer"),
                          "of_floor": dict(row["of_floor"] or {}),
                          "of_peer": dict(row.get("of_peer") or {})} for row in rows])
        except OSError as error:
            sys.exit(f"bench: {path}: {error.strerror}")
        except (ValueError, KeyError, TypeError, AttributeError):
            sys.exit(f"bench: {path}: not what --json writes")
    print(figures.compare(*runs), end="")
    return 0


def main():
    arguments = read_arguments()
    if arguments.compare:
        return compare(arguments.compare)
    if not arguments.here and not arguments.inside:
        why_not = machine.enter_namespace([os.path.abspath(__file__), "--inside", *sys.argv[1:]])
        sys.exit(f"bench: no private network namespace: {why_not} (--here does without)")
    programs = Programs(arguments.build, *((0.1, 1) if arguments.quick else ()))
    for name in ("bench/floor", "ndkperf"):
        why_not = programs.why_not(name)
        if why_not:
            sys.exit(f"bench: {why_not}: make bench builds it")
    if arguments.inside:
        machine.set_up_network()
    if os.cpu_count() < 2:
        print("bench: one CPU only: both ends share it, and nothing here means much",
              file=sys.stderr)
    load = {"load before": f"{os.getloadavg()[0]:.2f}"} # of others; the runs make their own
    programs.measure_limits()
    session = Session(programs, arguments)
    before = machine.steal_ticks()
    session.run()
    after = machine.steal_ticks()
    steal = (after[0] - before[0]) / max(1, after[1] - before[1])
    return report(session, {**machine.describe(programs, HERE.parent), **load}, steal)


if __name__ == "__main__":
    sys.exit(main())
