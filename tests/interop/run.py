#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Interop with the software iWARP of Linux, in a virtual machine.

    run.py [--build DIRECTORY] [--quick] [--only TEXT] [--minutes N] [--list] [--user-network]

Builds the guest (make_guest.py), boots it, runs every case of siw_cases.py against it, and has tshark
judge what was on the wire. Everything is in DIRECTORY/interop: cache/ (the guest; the environment's
SOFTNDK_INTEROP_CACHE may name another place), results/ (table.txt, results.json, a log for each case,
wire.pcap, the guest's console).

Runs in a network namespace of its own where the system grants one, with a link between guest and
namespace; else over QEMU's user networking, and what needs another MTU is skipped.

Prints a line a case, a table, and in the end `N skipped` and `N passed, N failed`. Exit status 77,
with the reason: there can be no guest here, or it was not there in time. --minutes counts from the
start, with the building of the guest; what is not done by then is skipped, whatever hangs.
A guest that breaks down, or stands still, says nothing about us: the case is done once more with a
fresh one, and then skipped, with the reason.
"""

import argparse
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import judge # noqa: E402
import siw_cases # noqa: E402
from bench import Bench, Failed # noqa: E402
from guest import Guest, GuestError, UserNetwork, make_network # noqa: E402

INSIDE = "SOFTNDK_INTEROP_INSIDE" # since when, by the clock that all processes share
PORTS = range(7200, 7280)
SKIPPED = 77


def say(text):
    print(f"interop: {text}", flush=True)


def skip(reason):
    say(f"skipped: {reason}")
    print("1 skipped\n0 passed, 0 failed")
    sys.exit(SKIPPED)


def enter_namespace(began):
    """Goes on in a network namespace of its own, if it may."""
    if os.environ.get(INSIDE) or not shutil.which("unshare"):
        return
    flags = "-n" if os.geteuid() == 0 else "-rn"
    if subprocess.run(["unshare", flags, "true"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        return
    os.environ[INSIDE] = str(began)
    os.execvp("unshare", ["unshare", flags, sys.executable, __file__, *sys.argv[1:]])


class Run:
    """All cases, one guest; a guest that breaks down is replaced by a fresh one."""

    def __init__(self, arguments, end):
        self.end = end
        self.build = pathlib.Path(arguments.build).resolve()
        self.cache = pathlib.Path(os.environ.get("SOFTNDK_INTEROP_CACHE")
                                  or self.build / "interop/cache").resolve()
        self.directory = self.build / "interop/results"
        self.force_user = arguments.user_network
        self.network = self.guest = self.bench = None
        self.captures, self.results = [], []
        self.boots = 0
        self.broken = None

    # ---- the guest

    def start_guest(self):
        self.stop_guest()
        ports = list(PORTS)
        if self.force_user:
            self.network, why = UserNetwork(ports), "--user-network"
        else:
            self.network, why = make_network(ports)
        if why and not self.boots:
            say(f"user networking instead of a link of our own: {why}")
        self.boots += 1
        self.guest = Guest(self.cache, self.directory, self.network, self.end)
        self.guest.capture = self.directory / f"wire{self.boots}.pcap"
        self.guest.start()
        self.captures.append(self.guest.capture)
        self.bench = Bench(self.build, self.directory, self.guest, ports)
        say(f"guest {self.guest.made['release']} ({self.guest.made['version']}), rdma-core "
            f"{self.guest.made['rdma-core']}, perftest {self.guest.made['perftest']}, "
            f"{self.guest.accelerator}, ready after {self.guest.ready_s:.1f} s, "
            f"{self.network.name} network")

    def stop_guest(self):
        if self.guest:
            self.guest.stop()
            self.guest = None
        if self.network:
            self.network.close()
            self.network = None

    # ---- cases

    def one(self, number, case):
        """A guest that breaks down gets a second chance."""
        result = self.attempt(number, case)
        if self.broken and result["result"] == "failed" and not self.is_late():
            say(f"{self.broken}: once more with a fresh guest: {case.name}")
            why = self.broken
            result = self.attempt(number, case)
            result["detail"] = f"{result['detail']} (again; first: {why})".strip()
        if result["result"] == "failed" and self.is_late():
            result.update(result="skipped", detail=f"no time left: {result['detail']}")
        elif result["result"] == "failed" and self.broken:
            result.update(result="skipped", detail=f"the guest: {result['detail']}")
        return result

    def is_late(self):
        return time.monotonic() > self.end

    def attempt(self, number, case):
        self.broken = None
        result = {"name": case.name, "rows": case.rows, "result": "passed", "detail": "",
                  "ports": []}
        if self.guest is None or not self.guest.alive():
            try:
                self.stop_guest()
                self.start_guest()
            except GuestError as error: # of a machine that is too busy for it, say
                self.broken = str(error)
                self.stop_guest()
                result.update(result="failed", detail=self.broken)
                return result
        began = time.monotonic()
        self.bench.begin(f"{number:02}")
        try:
            if case.mtu not in self.network.mtus:
                result.update(result="skipped", detail=f"no MTU of {case.mtu} here")
                return result
            self.guest.set_mtu(case.mtu)
            self.guest.siw(**case.siw)
            result["detail"] = case.action(self.bench) or ""
        except (Failed, GuestError) as error:
            result.update(result="failed", detail=str(error))
            if isinstance(error, GuestError):
                self.broken = str(error)
        finally:
            self.finish(number, case, result)
            result["seconds"] = round(time.monotonic() - began, 1)
        return result

    def finish(self, number, case, result):
        try:
            told = self.bench.finish()
            dmesg = self.guest.dmesg() if result["result"] == "failed" else ""
        except GuestError as error:
            told, dmesg = [], str(error)
            result.update(result="failed", detail=result["detail"] or str(error))
        result["boot"], result["ports"] = self.boots, self.bench.servers
        with (self.directory / f"{number:02}.log").open("w") as log:
            log.write(f"{case.name}: {result['result']} {result['detail']}\n")
            for text, output in told:
                log.write(f"\n$ {text}\n{output}")
            log.write(f"\n{dmesg}\n" if dmesg else "")
        for file in self.directory.glob(f"{number:02}.*.out"):
            file.unlink()
        if result["result"] == "failed":
            self.broken = self.guest.broken() or self.broken
            self.stop_guest() # whatever is wrong with it, the next case gets a fresh one

    def run(self, chosen):
        for number, case in chosen:
            if not self.is_late():
                result = self.one(number, case)
            else:
                result = {"name": case.name, "rows": case.rows, "result": "skipped",
                          "detail": "no time left", "ports": []}
            self.results.append(result)
            print(f"{result['result']:8}{result.get('seconds', 0):6.1f} s  {number:02} {case.name}"
                  + (f": {result['detail']}" if result["detail"] else ""), flush=True)

    # ---- the wire

    def judge(self, chosen):
        """tshark's verdict may turn a case that seemed good."""
        if not shutil.which("tshark"):
            say("the wire is not judged: tshark is missing")
            return
        wires = {}
        for boot, capture in enumerate(self.captures, 1):
            try:
                wires[boot] = judge.dissect(capture, self.directory / "tshark.log")
            except (OSError, subprocess.CalledProcessError) as error:
                self.results.append({"name": f"tshark reads {capture.name}", "result": "failed",
                                     "detail": str(error), "rows": "W-121", "ports": []})
        for (_, case), result in zip(chosen, self.results[:len(chosen)]):
            found = [wires[result["boot"]][port] for port in result["ports"]
                     if port in wires.get(result.get("boot"), {})]
            if result["result"] == "skipped" or not found:
                continue
            result["wire"] = "; ".join(to.text() for to in found)
            wrong = [text for to in found for text in complaints(case, to)]
            if wrong and result["result"] == "passed":
                result.update(result="failed", detail="on the wire: " + ", ".join(wrong))

    # ---- results

    def report(self):
        counts = {kind: sum(result["result"] == kind for result in self.results)
                  for kind in ("passed", "failed", "skipped")}
        width = max(len(result["name"]) for result in self.results)
        lines = [f"{result['result']:8}{result['name']:{width}} {result.get('seconds', 0):6.1f} s  "
                 f"{result['detail'] or result.get('wire', '')}" for result in self.results]
        about = {**(self.guest.made if self.guest else {}), "boots": self.boots,
                 "accelerator": self.guest.accelerator if self.guest else None,
                 "network": self.network.name if self.network else None}
        (self.directory / "table.txt").write_text("\n".join(lines) + "\n")
        (self.directory / "results.json").write_text(
            json.dumps({"guest": about, "cases": self.results}, indent=1) + "\n")
        print("\n" + "\n".join(lines))
        print(f"\nlogs: {self.directory}")
        print(f"{counts['skipped']} skipped")
        print(f"{counts['passed']} passed, {counts['failed']} failed")
        return 1 if counts["failed"] else 0


def complaints(case, to):
    """W-121: an independent dissector finds nothing wrong."""
    if to.malformed:
        yield f"{to.malformed} malformed"
    if to.unknown:
        yield f"{to.unknown} segments that are no MPA frame"
    if to.requests and not to.fpdus and case.crc is not None:
        yield "no FPDU"
    if case.crc and (to.bad or to.good != to.fpdus):
        yield f"{to.fpdus} FPDUs, {to.good} with a good CRC, {to.bad} with a bad one"
    if case.crc is False and to.good:
        yield f"{to.good} FPDUs have a CRC"
    if to.refused != case.refusals:
        yield f"{to.refused} Replies that refuse (need {case.refusals})"
    theirs = sum(from_server == case.guest_listens for from_server, _ in to.terminates)
    ours = len(to.terminates) - theirs
    if case.terminates is None:
        good = theirs <= 1 and ours == 0
    else:
        good = theirs == max(case.terminates, 0) and ours == max(-case.terminates, 0)
    if not good:
        yield f"{theirs} Terminates of the guest, {ours} of ours"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build directory (build)")
    parser.add_argument("--quick", action="store_true", help="a selection that takes less time")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--minutes", type=int, default=60,
                        help="from the start; what is not done by then is skipped (60)")
    parser.add_argument("--list", action="store_true", help="print the cases, do nothing")
    parser.add_argument("--user-network", action="store_true", help="no link of our own")
    return parser.parse_args()


def interrupted(number, _frame):
    say(f"interrupted by {signal.Signals(number).name}")
    sys.exit(128 + number)


def make_guest(run):
    """In a group of its own, so that what it started ends with it."""
    with subprocess.Popen([sys.executable, str(HERE / "make_guest.py"), str(run.cache)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            text, _ = process.communicate(timeout=max(1.0, run.end - time.monotonic()))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                skip("no time left: the guest is still being built")
            raise
    print(text, end="", flush=True)
    if process.returncode:
        last = (text.strip().splitlines() or ["it says nothing"])[-1]
        skip(f"there is no guest: {last.split('skipped: ')[-1]}")


def main():
    arguments = read_arguments()
    chosen = [(number, case) for number, case in enumerate(siw_cases.all_cases(), 1)
              if arguments.only in case.name and (case.quick or not arguments.quick)]
    if arguments.list:
        print("\n".join(f"{number:02} {case.name}" for number, case in chosen))
        return 0
    began = float(os.environ.get(INSIDE) or time.monotonic())
    run = Run(arguments, began + arguments.minutes * 60)
    if not (run.build / "bin/interop/talk").exists():
        print(f"interop: nothing built in {run.build}", file=sys.stderr)
        return 2
    if not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is missing (package qemu-system-x86)")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    if not os.environ.get(INSIDE):
        make_guest(run) # with the network as it is
    enter_namespace(began)
    if os.environ.get(INSIDE) and shutil.which("ip"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    run.directory.parent.mkdir(parents=True, exist_ok=True)
    lock = (run.directory.parent / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"interop: another run is using {run.directory}", file=sys.stderr)
        return 2
    shutil.rmtree(run.directory, ignore_errors=True)
    run.directory.mkdir(parents=True)
    try:
        run.start_guest()
        run.run(chosen)
        run.judge(chosen)
        return run.report()
    except GuestError as error:
        if run.results:
            raise
        skip(str(error))
    finally:
        if run.bench and run.guest:
            for program in run.bench.programs:
                program.end()
        run.stop_guest()


if __name__ == "__main__":
    sys.exit(main())
