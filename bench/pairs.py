# SPDX-License-Identifier: MIT
"""Runs a server and a client, each bound to its processor, and reads what the client prints. Each
program of the bench has a function here that gives its figures as a dictionary."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time

SERVER_CPU, CLIENT_CPU = 0, 1
ADDRESS = "127.0.0.1"
LISTEN_S, RUN_S = 20, 60
FABRIC_PORT, UCX_PORT = 47592, 13337 # of programs that want one; the namespace is ours alone


class Failed(Exception):
    """A measurement did not come about; the text says why."""


def last(text, most=200):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:most] if lines else "it says nothing"


def bound_to(cpu):
    def bind():
        if cpu in os.sched_getaffinity(0):
            os.sched_setaffinity(0, {cpu})
    return bind


def environment(more):
    """Ours without what would change a measurement."""
    base = {key: value for key, value in os.environ.items()
            if not key.startswith(("SOFTNDK_", "FI_", "UCX_"))}
    return {**base, **more}


def is_listening(port):
    """Whether a socket of this namespace listens at the port."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    words = line.split()
                    if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                        return True
        except FileNotFoundError:
            pass
    return False


class Server:
    """A server that listens; with port None it says itself where."""

    def __init__(self, command, port, more):
        self.name = os.path.basename(command[0])
        self.out = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                        stdout=self.out, stderr=subprocess.STDOUT,
                                        env=environment(more),
                                        preexec_fn=bound_to(SERVER_CPU))
        end = time.monotonic() + LISTEN_S
        self.port = None
        while self.port is None:
            over = self.process.poll() is not None or time.monotonic() > end
            if port is None:
                found = re.search(r"^listening on .*:(\d+)$", self.text, re.MULTILINE)
                self.port = int(found[1]) if found else None
            elif is_listening(port):
                self.port = port
            if self.port is None and over:
                self.process.kill()
                self.end()
                raise Failed(f"{self.name}: does not listen: {last(self.text)}")
            if self.port is None:
                time.sleep(0.01)

    @property
    def text(self):
        self.out.seek(0)
        return self.out.read()

    def end(self):
        """A server serves one client and ends; what does not is ended."""
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(server, client, port=None, more=None):
    """Returns what the client prints. Both get the arguments of `server(port)`, `client(port)`."""
    one = Server(server, port, more or {})
    name = os.path.basename(client(0)[0])
    done = None
    try:
        done = subprocess.run(list(map(str, client(one.port))), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=RUN_S, env=environment(more or {}), check=False,
                              preexec_fn=bound_to(CLIENT_CPU))
    except subprocess.TimeoutExpired:
        raise Failed(f"{name}: not done after {RUN_S} s") from None
    finally:
        if done is None or done.returncode:
            one.process.kill()
        one.end()
    if done.returncode:
        raise Failed(f"{name}: exit status {done.returncode}: {last(done.stderr + done.stdout)}; "
                     f"the server: {last(one.text)}")
    return done.stdout


def last_object(name, text):
    try:
        return json.loads(last(text, None))
    except ValueError:
        raise Failed(f"{name}: prints no JSON: {last(text)}") from None


class Programs:
    """Where the programs are, how long one measures, and how often in a round."""

    def __init__(self, build, seconds=0.06, passes=8):
        self.build, self.seconds, self.scale, self.passes = build, seconds, seconds, passes
        self.connects = max(200, int(3000 * seconds)) # so many take about so long, one at a time
        self.iterations = {} # of ndkperf's work: how many take so long
        self.limits = {}

    def path(self, name):
        return str(self.build / "bin" / name)

    def why_not(self, name):
        """Why a program cannot be run, or None."""
        package = {"fi_pingpong": "libfabric-bin", "ucx_perftest": "ucx-utils"}.get(name)
        if package:
            return None if shutil.which(name) else f"{name} is not installed (package {package})"
        if os.access(self.path(name), os.X_OK):
            return None
        return "bench/fabric is not built (package libfabric-dev)" if name == "bench/fabric" else \
            f"no program {self.path(name)}"

    def measure_limits(self):
        done = subprocess.run([self.path("bench/floor"), "machine"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=RUN_S, check=False)
        if done.returncode == 0:
            self.limits = last_object("floor", done.stdout)

    def own(self, name, arguments, seconds=None):
        """floor and fabric: the same arguments, the same output."""
        path = self.path(name)
        text = run([path, "-s", "-a", ADDRESS],
                   lambda port: [path, "-c", ADDRESS, "-p", port, "--seconds",
                                 seconds or self.seconds, *arguments])
        return last_object(name, text)

    def floor(self, *arguments, times=1):
        """Measures `times` as long as others."""
        return self.own("bench/floor", arguments, seconds=times * self.seconds)

    def fabric(self, *arguments):
        return self.own("bench/fabric", arguments)

    def timed(self, *arguments, times=1):
        """ndkperf for about so long. Its clock knows whole seconds: the first run has one, and
        tells how many iterations the next ones get."""
        known = self.iterations.get(arguments)
        if known:
            return self.ndkperf(*arguments, "-n", known)
        data = self.ndkperf(*arguments, "-D", 1)
        self.iterations[arguments] = max(200, int(data["iters"] * times * self.seconds))
        return data

    def ndkperf(self, *arguments):
        path = self.path("ndkperf")
        text = run([path, "-s", "-p", 0, "--once", ADDRESS],
                   lambda port: [path, "-c", ADDRESS, "-p", port, "--json", *arguments])
        return last_object("ndkperf", text)

    def fi_pingpong(self, size, count):
        words = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-d", "lo", "-S", size, "-I",
                 max(100, int(count * self.scale))]
        text = run(words, lambda port: [*words, ADDRESS], port=FABRIC_PORT)
        fields = last(text).split()
        try:
            return {"t_avg_us": float(fields[6])}
        except (IndexError, ValueError):
            raise Failed(f"fi_pingpong: {last(text)}") from None

    def ucx(self, test, size, count):
        """-v prints a line: iterations, typical, average and overall latency in microseconds,
        average and overall MiB/s, average and overall messages a second."""
        words = ["ucx_perftest", "-p", UCX_PORT]
        count = max(20, int(count * self.scale))
        text = run(words, lambda port: [*words, ADDRESS, "-t", test, "-s", size, "-n", count,
                                        "-w", min(500, count // 10), "-f", "-v"],
                   port=UCX_PORT, more={"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo",
                                        "UCX_WARN_UNUSED_ENV_VARS": "n"})
        try:
            fields = [float(word) for word in last(text).split(",")]
            return {"t_avg_us": fields[3], "MBps": fields[5] * 1.048576,
                    "rate_Mps": fields[7] * 1e-6}
        except (IndexError, ValueError):
            raise Failed(f"ucx_perftest: {last(text)}") from None

    def scale_test(self, links):
        """User memory of an idle connection, KiB, at the end that takes more."""
        why_not = self.why_not("tests/scale")
        if why_not:
            raise Failed(why_not)
        try:
            done = subprocess.run([self.path("tests/scale"), "-n", str(links), "-r", "1"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=10 * RUN_S, env=environment({}), check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"scale: not done after {10 * RUN_S} s") from None
        octets = [int(found) for found in re.findall(r": (\d+) octets of user memory", done.stdout)]
        if len(octets) != 2:
            raise Failed(f"scale: {last(done.stdout + done.stderr)}")
        return {"KiB": max(octets) / 1024}
