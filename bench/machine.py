# SPDX-License-Identifier: MIT
"""The network namespace of a run, and what the machine is, for the head of the table."""

import datetime
import fcntl
import os
import pathlib
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
NETWORK = pathlib.Path("/proc/sys/net/ipv4")


# ---- the namespace -------------------------------------------------------------------------------

def enter_namespace(arguments):
    """Starts this program again in a network namespace of its own. Returns only if that cannot be,
    with the reason."""
    if not shutil.which("unshare"):
        return "unshare is not installed (package util-linux)"
    how = "-n" if os.geteuid() == 0 else "-rn"
    probe = subprocess.run(["unshare", how, "true"], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
    if probe.returncode:
        return probe.stderr.strip() or f"unshare {how} fails"
    sys.stdout.flush()
    os.execvp("unshare", ["unshare", how, sys.executable, *arguments])
    return None


def set_up_network(congestion="reno"):
    """Brings the loopback up. Returns the congestion control in force."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))
    for name, value in (("tcp_congestion_control", congestion),
                        # The port of a closed connection would rest for a minute, and after some
                        # ten thousand of them the search for a free one takes milliseconds.
                        ("tcp_max_tw_buckets", "0"),
                        ("ip_local_port_range", "1024 65535")):
        try:
            (NETWORK / name).write_text(value)
        except OSError as error:
            print(f"bench: {name} stays as it is: {error.strerror}", file=sys.stderr)
    return congestion_control()


def congestion_control():
    try:
        return (NETWORK / "tcp_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


# ---- what this is --------------------------------------------------------------------------------

def first_match(path, pattern, otherwise):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else otherwise


def output(*command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def steal_ticks():
    """Time that the hypervisor took, and all time, of all processors."""
    words = [int(word) for word in first_match("/proc/stat", r"^cpu +(.*)$", "0").split()]
    return (words[7] if len(words) > 7 else 0), sum(words)


def describe(programs, source):
    """What stands above the table: name and text."""
    flags = first_match("/proc/cpuinfo", r"^flags\s*: (.*)$", "")
    system = first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', "unknown system")
    fabric = re.search(r"libfabric: (\S+)", output("fi_info", "--version"))
    ucx = re.search(r"[Vv]ersion (\S+)", output("ucx_info", "-v"))
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{first_match('/proc/cpuinfo', r'^model name[^:]*: (.*)$', 'unknown')}, "
                     f"{os.cpu_count()} CPUs"
                     + (", virtual machine" if " hypervisor" in flags else ""),
        "system": f"{system}, Linux {platform.release()}",
        "network": f"lo, MTU {first_match('/sys/class/net/lo/mtu', '(.*)', '?')}, "
                   f"TCP congestion control {congestion_control()}, private namespace",
        "softndk": output("git", "-C", str(source), "describe", "--always", "--dirty",
                          "--abbrev=10") or "unknown revision",
        "crc": programs.limits.get("crc_by", "unknown"),
        "libfabric": fabric[1] if fabric else "not installed",
        "ucx": ucx[1] if ucx else "not installed",
    }


def head(about, limits, notes):
    """The same as Markdown, with what bounds everything and what was left out."""
    lines = [f"- {name}: {text}" for name, text in about.items()]
    if limits:
        copies = ", ".join(f"{size} B {one['copy']:.0f}/{one['crc']:.0f}"
                           for size, one in limits["GBps"].items())
        lines.append(f"- limits: system call {limits['null_syscall_ns']:.0f} ns, waking a thread "
                     f"on the other CPU {limits['hand_off_us']:.0f} us, copy/CRC in GB/s: {copies}")
    lines += [f"- {note}" for note in notes]
    return "\n".join(lines) + "\n"
