# SPDX-License-Identifier: MIT
"""What the cases of the interop tests do: programs on this side, commands in the guest, and what
either must come to."""

import os
import re
import subprocess
import time

STEP_S = 60 # one program at most; emulation on a busy machine is slow
LISTEN_S = 30
RPING_MAX = 65535
# When all is done, rping -c may close its event channel under its own thread, which then says this
# and ends the process with status 1. What it had to do is looked at elsewhere.
RPING_RACE = "rdma_get_cm_event: Bad file descriptor"


class Failed(Exception):
    """A case is not good; the text says why."""


class Program:
    """A program on this side, with its output in a file."""

    def __init__(self, bench, arguments, options, environment):
        self.text = " ".join([os.path.basename(arguments[0]), *map(str, arguments[1:])])
        self.path = bench.directory / f"{bench.case}.{len(bench.programs) + 1}.out"
        self.limit = STEP_S
        environment = {**os.environ, "SOFTNDK_OPTIONS": options, "SOFTNDK_LOG": "info",
                       **environment}
        with self.path.open("w") as out:
            self.process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT, env=environment,
                                            start_new_session=True)
        bench.programs.append(self)

    @property
    def output(self):
        return self.path.read_text(errors="replace")

    def wait(self):
        try:
            return self.process.wait(self.limit)
        except subprocess.TimeoutExpired:
            self.end()
            raise Failed(f"{self.text}: not done after {self.limit} s") from None

    def must(self, status=0):
        have = self.wait()
        if have != status:
            raise Failed(f"{self.text}: exit status {have} (need {status}): {last(self.output)}")
        return self.output

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def last(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it says nothing"


class Bench:
    """One case at a time: what it started ends with it."""

    def __init__(self, build, directory, guest, ports):
        self.build, self.directory, self.guest = build, directory, guest
        self.free = list(ports)
        self.here = guest.network.here
        self.case = None
        self.begin("none")

    def begin(self, case):
        self.case = case
        self.programs, self.commands = [], []
        self.servers = [] # ports, as the guest's wire has them

    def finish(self):
        for program in self.programs:
            program.end()
        for command in self.commands:
            if not command.done.is_set() and self.guest.alive():
                command.end()
        return [(program.text, program.output) for program in self.programs] + \
               [(f"guest: {command.text}", command.output) for command in self.commands]

    # ---- this side

    def program(self, name, *arguments, options="", **environment):
        return Program(self, [self.build / "bin" / name, *arguments], options, environment)

    def server(self, name, *arguments, options=""):
        """Starts ndkping -s or talk -s, and returns it with the port it listens at."""
        program = self.program(name, *arguments, options=options)
        end = time.monotonic() + LISTEN_S
        while time.monotonic() < end:
            found = re.search(r"^listening on .*:(\d+)$", program.output, re.MULTILINE)
            if found:
                self.servers.append(int(found[1]))
                return program, int(found[1])
            if program.process.poll() is not None:
                break
            time.sleep(0.02)
        raise Failed(f"{program.text}: does not listen: {last(program.output)}")

    def ping_server(self, *arguments, options=""):
        return self.server("ndkping", "-s", "-a", self.guest.network.listen, "-p", 0, *arguments,
                           options=options)

    def ping(self, port, *arguments, options=""):
        address, port = self.guest.network.guest_address(port)
        return self.program("ndkping", "-c", "-a", address, "-p", port, *arguments,
                            options=options)

    def talk(self, port, *steps, options=""):
        address, port = self.guest.network.guest_address(port)
        return self.program("interop/talk", "-c", address, port, *steps, options=options)

    def talk_server(self, *steps, options=""):
        return self.server("interop/talk", "-s", self.guest.network.listen, *steps, options=options)

    def perf(self, port, *arguments, options=""):
        address, port = self.guest.network.guest_address(port)
        return self.program("interop/perf", "-c", address, port, *arguments, options=options)

    def perf_server(self, *arguments, options=""):
        return self.server("interop/perf", "-s", self.guest.network.listen, *arguments,
                           options=options)

    # ---- the guest

    def run(self, command, seconds=STEP_S):
        began = self.guest.begin(command, seconds)
        self.commands.append(began)
        return began

    def must(self, command, status=0):
        have = command.wait()
        if have == 1 and status == 0 and RPING_RACE in command.output:
            have = 0
        if have != status:
            raise Failed(f"guest: {command.text}: exit status {have} (need {status}): "
                         f"{last(command.output)}")
        return command.output

    def port(self):
        """A port for a server in the guest, used by no other case."""
        port = self.free.pop(0)
        self.servers.append(port)
        return port

    def guest_server(self, command, port, seconds=600):
        began = self.run(command.format(port=port), seconds)
        status, output = self.guest.call(f"wait_listen {port}", LISTEN_S)
        if status or began.done.is_set():
            raise Failed(f"guest: {began.text}: does not listen: {last(began.output + output)}")
        return began

    def rping_server(self, arguments=f"-P -V -S {RPING_MAX}"):
        port = self.port()
        return self.guest_server(f"rping -s -a 0.0.0.0 -p {port} {arguments}", port), port

    def rping(self, port, arguments, seconds=STEP_S):
        return self.run(f"rping -c -a {self.here} -p {port} {arguments}", seconds)


def expect(text, wanted, what):
    if not re.search(wanted, text):
        raise Failed(f"{what}: does not say '{wanted}': {last(text)}")
