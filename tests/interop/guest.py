# SPDX-License-Identifier: MIT
"""The guest that make_guest.py built: QEMU, the network to it, and commands in it.

Only the process that is started here is ever ended, by its own handle. Where there is setpriv, the
kernel ends it with this process, however that ends.
"""

import contextlib
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import threading
import time

READY_S = 180 # from start to readiness: 5 to 8 s under emulation on an idle machine
ANSWER_S = 60 # from the end of a command to its answer
PARAMETERS = "/sys/module/siw/parameters"


class GuestError(Exception):
    """The guest does not do what it must for a test to mean anything."""


def accelerators():
    """Hardware first, where the processor's own module is there; /dev/kvm alone proves nothing."""
    real = any(pathlib.Path(f"/sys/module/kvm_{kind}").exists() for kind in ("intel", "amd"))
    return ["kvm", "tcg"] if real and os.access("/dev/kvm", os.R_OK | os.W_OK) else ["tcg"]


def free_ports(count):
    """Held together, or the system may give the same one twice."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


class UserNetwork:
    """QEMU's own TCP/IP between the guest and this machine's loopback; needs no rights. It ends the
    connection on each side, so segments do not stay as they were sent."""

    name = "user"
    mtus = (1500,)
    here = "10.0.2.2" # how the guest reaches us
    listen = "127.0.0.1"
    guest = "10.0.2.15/24"

    def __init__(self, ports):
        self.wanted, self.ports = list(ports), {}

    def arguments(self):
        # Anew for each start: another program may have taken one meanwhile.
        self.ports = dict(zip(self.wanted, free_ports(len(self.wanted))))
        forward = "".join(f",hostfwd=tcp:127.0.0.1:{ours}-:{port}"
                          for port, ours in self.ports.items())
        return ["-netdev", f"user,id=n0{forward}"]

    def guest_address(self, port):
        return "127.0.0.1", self.ports[port]

    def set_mtu(self, mtu):
        if mtu not in self.mtus:
            raise GuestError(f"user networking has no MTU of {mtu}")

    def close(self):
        pass


class TapNetwork:
    """A link of its own between the guest and this network namespace: what is sent arrives so."""

    name = "tap"
    mtus = (1500, 9000)
    here = listen = "198.18.7.1"
    guest = "198.18.7.2/30"
    device = "softndk0"

    def __init__(self, _ports):
        self.ip("tuntap", "add", self.device, "mode", "tap")
        try:
            self.ip("addr", "add", f"{self.here}/30", "dev", self.device)
            self.ip("link", "set", self.device, "up", "mtu", "1500")
        except Exception:
            self.close()
            raise

    @staticmethod
    def ip(*arguments):
        done = subprocess.run(["ip", *arguments], stdout=subprocess.DEVNULL, check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise GuestError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def arguments(self):
        # Without the header of virtio no offload is agreed: a frame here is a frame on the wire.
        return ["-netdev", f"tap,id=n0,ifname={self.device},script=no,downscript=no,vnet_hdr=off"]

    def guest_address(self, port):
        return self.guest.split("/")[0], port

    def set_mtu(self, mtu):
        self.ip("link", "set", self.device, "mtu", str(mtu))

    def close(self):
        subprocess.run(["ip", "tuntap", "del", self.device, "mode", "tap"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_network(ports):
    """The better one that can be had, and why the other one not."""
    if not shutil.which("ip"):
        return UserNetwork(ports), "ip is missing (package iproute2)"
    try:
        return TapNetwork(ports), None
    except GuestError as error:
        return UserNetwork(ports), str(error)


class Command:
    """A command that runs in the guest."""

    def __init__(self, guest, name, seconds, text):
        self.guest, self.name, self.text = guest, name, text
        self.limit = seconds
        self.status = None
        self.lines = []
        self.done = threading.Event()

    @property
    def output(self):
        return "\n".join(self.lines)

    def wait(self, seconds=None):
        """Its exit status; 137: it was ended, by its limit or by end()."""
        end = min(self.guest.end, time.monotonic() + (seconds or self.limit + ANSWER_S))
        while not self.done.wait(0.1):
            if not self.guest.alive():
                raise GuestError(f"the guest ended ({self.guest.last_words()}) during: {self.text}")
            if time.monotonic() > end:
                raise GuestError(f"the guest does not answer: {self.text}")
        return self.status

    def end(self):
        if not self.done.is_set():
            self.guest.say(f"end {self.name}")
        return self.wait(ANSWER_S)


class Guest:
    """One run of QEMU. Nothing is waited for after the end, a time.monotonic()."""

    def __init__(self, cache, directory, network, end):
        self.cache, self.directory, self.network = cache, directory, network
        self.end = end
        self.made = json.loads((cache / "guest.json").read_text())
        self.capture = directory / "wire.pcap"
        self.console = directory / "console.log"
        self.process = None
        self.commands, self.count = {}, 0
        self.ready = threading.Event()
        self.accelerator = self.ready_s = None
        self.set = {}
        self.mtu = 1500

    # ---- start and end

    def start(self):
        tried = []
        for accelerator in [*accelerators(), "tcg"]: # the last one twice
            began = time.monotonic()
            self.launch(accelerator)
            if self.wait_ready():
                self.accelerator = accelerator
                self.ready_s = time.monotonic() - began
                self.mtu = 1500
                self.set = {name: self.call(f"cat {PARAMETERS}/{name}")[1].strip()
                            for name in ("mpa_crc_required", "mpa_crc_strict", "peer_to_peer",
                                         "mpa_version", "try_gso")}
                return
            tried.append(f"{accelerator}: {self.last_words()}")
            self.stop()
        raise GuestError("the guest does not come up: " + "; ".join(tried))

    def launch(self, accelerator):
        self.console.unlink(missing_ok=True)
        with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        arguments = [
            *with_us, "qemu-system-x86_64", "-machine", "q35", "-accel", accelerator,
            "-cpu", "host" if accelerator == "kvm" else "max", "-m", "512", "-smp", "1",
            "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
            "-kernel", str(self.cache / self.made["kernel"]),
            "-initrd", str(self.cache / "initramfs.cpio"),
            "-append", "console=ttyS0 quiet oops=panic panic=-1 mitigations=off ipv6.disable=1"
                       f" address={self.network.guest}",
            *self.network.arguments(),
            "-device", "virtio-net-pci,netdev=n0,romfile=,mac=52:54:00:12:07:02",
            "-object", f"filter-dump,id=d0,netdev=n0,file={self.capture}",
            "-serial", f"file:{self.console}",
            "-chardev", "stdio,id=agent,signal=off", "-device", "virtio-serial-pci",
            "-device", "virtserialport,chardev=agent,name=agent"]
        self.ready.clear()
        with (self.directory / "qemu.log").open("w") as log:
            # A session of its own: an interrupt at the terminal reaches us, and we end it.
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True)
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()

    def wait_ready(self):
        end = min(self.end, time.monotonic() + READY_S)
        while not self.ready.wait(0.1):
            if not self.alive() or time.monotonic() > end:
                return False
        return True

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def last_words(self):
        log = (self.directory / "qemu.log").read_text(errors="replace").strip()
        lines = (log or self.console_text()).strip().splitlines()
        return self.broken() or (lines[-1] if lines else "it says nothing")

    def console_text(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def broken(self):
        """Where the guest's kernel has broken down, which also ends it; or None."""
        found = re.search(r"kernel BUG at \S+|BUG: .*|Oops: .*", self.console_text())
        return found[0].strip() if found else None

    def stop(self):
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(OSError): # what was said to a guest that had ended already
            process.stdin.close()

    # ---- commands

    def listen(self, process):
        for line in process.stdout:
            text = line.decode(errors="replace").rstrip("\r\n")
            if text == "ready":
                self.ready.set()
                continue
            found = re.match(r"(c\d+)([:=]) ?(.*)", text)
            command = self.commands.get(found[1]) if found else None
            if not command:
                continue
            if found[2] == ":":
                command.lines.append(found[3])
            else:
                command.status = int(found[3])
                command.done.set()

    def say(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except (AttributeError, OSError) as error:
            raise GuestError("the guest has ended") from error

    def begin(self, text, seconds=60):
        self.count += 1
        name = f"c{self.count}"
        command = self.commands[name] = Command(self, name, seconds, text)
        self.say(f"{name} {seconds} {text}")
        return command

    def call(self, text, seconds=60):
        command = self.begin(text, seconds)
        return command.wait(), command.output

    def must(self, text, seconds=60):
        status, output = self.call(text, seconds)
        if status:
            raise GuestError(f"in the guest: {text}: exit status {status}: {output}")
        return output

    # ---- settings

    def siw(self, **wanted):
        """Parameters of the driver; those not named have their defaults."""
        values = {"mpa_crc_required": "N", "mpa_crc_strict": "N", "peer_to_peer": "N",
                  "mpa_version": "2", "try_gso": "N"}
        values.update({name: ("Y" if value else "N") if isinstance(value, bool) else str(value)
                       for name, value in wanted.items()})
        changed = {name: value for name, value in values.items() if self.set.get(name) != value}
        if changed:
            self.must("; ".join(f"echo {value} >{PARAMETERS}/{name}"
                                for name, value in changed.items()))
        self.set.update(changed)

    def set_mtu(self, mtu):
        if mtu == self.mtu:
            return
        self.network.set_mtu(mtu)
        self.must(f"ip link set eth0 mtu {mtu}")
        self.mtu = mtu

    def dmesg(self):
        return self.call("dmesg | tail -n 30")[1]
