#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""effects.py [options] - what the options of docs/tuning.md that concern speed change here.

A row is one work of ndkperf with the default and with another value, in turn, so that a slow phase
of the machine meets both; the same namespace and processors as run.py. Prints the medians, and how
the second is to the first: of the medians, and the least and most of one round."""

import argparse
import os
import pathlib
import sys

import figures
import machine
from pairs import Failed, Programs

HERE = pathlib.Path(__file__).resolve().parent
PASSES = 16 # of a round

POLLED = ("--wait", "spin", "--progress", "inline")
CALLED_BACK = ("--wait", "event", "--progress", "engine")
LATENCY = ("--op", "send", "--mode", "lat", "-S", 64)
RATE = ("--op", "send", "--mode", "rate", "-S", 64, "-t", 1024)
WRITES = ("--op", "write", "--mode", "bw", "-S", 1 << 20, "-t", 16)
CHAINS = ("--defer", 32, "-Q", 32)


class Effect:
    def __init__(self, option, work, key, unit, base, changed, plain=()):
        """plain: what stands in place of `changed` in the run with the default."""
        self.option, self.work, self.key, self.unit = option, work, key, unit
        self.default, self.changed = (*base, *plain), (*base, *changed)


EFFECTS = [
    Effect("crc=0", "1 MiB writes", "bw_avg_MBps", "MB/s", (*WRITES, *POLLED), ("--crc", "off")),
    Effect("crc=0", "64 B sends in chains", "rate_Mps", "M/s", (*RATE, *CHAINS, *POLLED),
           ("--crc", "off")),
    Effect("fpdu_max=1422", "1 MiB writes", "bw_avg_MBps", "MB/s", (*WRITES, *POLLED),
           ("--fpdu", 1422)),
    Effect("completion=placed", "64 B sends in chains", "rate_Mps", "M/s",
           (*RATE, *CHAINS, *POLLED), ("--completion", "placed")),
    Effect("completion=acked", "64 B sends in chains", "rate_Mps", "M/s",
           (*RATE, *CHAINS, *POLLED), ("--completion", "acked")),
    Effect("progress=inline", "64 B half round trip, polling", "t_avg_us", "us",
           (*LATENCY, "--wait", "spin"), ("--progress", "inline"), ("--progress", "engine")),
    Effect("progress=adaptive", "64 B half round trip, callbacks", "t_avg_us", "us",
           (*LATENCY, "--wait", "event"), ("--progress", "adaptive"), ("--progress", "engine")),
    Effect("spin_us=50", "64 B half round trip, callbacks", "t_avg_us", "us",
           (*LATENCY, *CALLED_BACK), ("-o", "spin_us=50")),
    Effect("shards=1", "64 B sends from callbacks, 8 QPs", "rate_Mps", "M/s",
           (*RATE, "-q", 8, *CALLED_BACK), ("-o", "shards=1")),
    Effect("tcp_buffer=131072", "1 MiB writes", "bw_avg_MBps", "MB/s", (*WRITES, *POLLED),
           ("-o", "tcp_buffer=131072")),
    Effect("(NDK_OP_FLAG_DEFER)", "64 B sends, chains of 32, not one by one", "rate_Mps", "M/s",
           (*RATE, *POLLED), CHAINS),
    Effect("(callbacks)", "64 B sends posted from callbacks, not while polling", "rate_Mps",
           "M/s", RATE, CALLED_BACK, POLLED),
    Effect("(NDK_OP_FLAG_INLINE)", "64 B sends in chains", "rate_Mps", "M/s",
           (*RATE, *CHAINS, *POLLED), ("--inline", 64)),
]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="(5)")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build",
                        help="where the programs are (build)")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help="replace what stands between the marks of FILE")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(programs, effect):
    """(with the default, changed)"""
    taken = [[programs.timed(*arguments)[effect.key]
              for arguments in (effect.default, effect.changed)] for _ in range(PASSES)]
    return tuple(figures.median(values) for values in zip(*taken))


def line(effect, pairs):
    plain, changed = (figures.median(values) for values in zip(*pairs))
    ratio = figures.Ratio([(after, before) for before, after in pairs])
    return (f"| `{effect.option}` | {effect.work} | {effect.unit} | {figures.number(plain)} | "
            f"{figures.number(changed)} | {ratio.text()} |")


def main():
    arguments = read_arguments()
    if not arguments.inside:
        why_not = machine.enter_namespace([os.path.abspath(__file__), "--inside", *sys.argv[1:]])
        sys.exit(f"bench: no private network namespace: {why_not}")
    programs = Programs(arguments.build)
    why_not = programs.why_not("ndkperf")
    if why_not:
        sys.exit(f"bench: {why_not}: make bench builds it")
    machine.set_up_network()
    programs.measure_limits()
    measured = {effect: [] for effect in EFFECTS}
    failed = False
    for number in range(arguments.rounds):
        for effect, pairs in measured.items():
            try:
                pairs.append(measure(programs, effect))
                print(f"round {number + 1}, {effect.option}, {effect.work}: "
                      f"{' '.join(map(figures.number, pairs[-1]))} {effect.unit}",
                      file=sys.stderr, flush=True)
            except Failed as error:
                failed = True
                print(f"bench: {effect.option}: {error}", file=sys.stderr)
    text = machine.head(machine.describe(programs, HERE.parent), programs.limits, []) + (
        "\n| option | work | unit | default | so | to the default |\n|---|---|---|---|---|---|\n") + \
        "".join(line(effect, pairs) + "\n" for effect, pairs in measured.items() if pairs)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(
            figures.place(arguments.markdown.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
