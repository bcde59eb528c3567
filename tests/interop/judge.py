# SPDX-License-Identifier: MIT
"""tshark's view of the wire: what stands in each connection, by the port of its server.

Only the iWARP protocols count: what payload looks like may mislead the dissectors above, and
rpcordma would take some of it, so that one is off."""

import collections
import re
import subprocess

PORTS = re.compile(r"^Transmission Control Protocol, Src Port: (\d+), Dst Port: (\d+)")
LENGTH = re.compile(r"^Transmission Control Protocol, .*Len: (\d+)")


class Connections:
    """All connections to one port."""

    def __init__(self):
        self.syns = self.requests = self.replies = self.refused = 0
        self.fpdus = self.good = self.bad = self.unknown = self.malformed = self.longest = 0
        self.opcodes = collections.Counter()
        self.terminates = [] # (sent by the server?, control octets as RFC 5040 has them)

    def text(self):
        names = ", ".join(f"{count} {name}" for name, count in self.opcodes.most_common())
        return (f"{self.requests} Requests, {self.replies} Replies, {self.fpdus} FPDUs "
                f"({self.good} good CRCs, {self.bad} bad), longest {self.longest}; {names}")


def dissect(capture, log):
    """Port of the server -> Connections. Raises OSError or CalledProcessError."""
    command = ["tshark", "-n", "-r", str(capture), "--disable-protocol", "rpcordma",
               "-o", "tcp.reassemble_out_of_order:TRUE", "-V",
               "-O", "tcp,iwarp_mpa,iwarp_ddp_rdmap"]
    found = collections.defaultdict(Connections)
    servers = {}
    with open(log, "w") as errors, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True,
            errors="replace") as process:
        frame = []
        for line in process.stdout:
            if line.startswith("Frame "):
                take(frame, servers, found)
                frame = []
            frame.append(line.rstrip("\n"))
        take(frame, servers, found)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return found


def take(frame, servers, found):
    """Counts one frame."""
    head = next((PORTS.match(line) for line in frame if PORTS.match(line)), None)
    if not head:
        return
    text = "\n".join(frame)
    source, target = int(head[1]), int(head[2])
    pair = frozenset((source, target))
    if re.search(r"Flags: 0x\w+ \(SYN\)", text):
        servers[pair] = target
    server = servers.get(pair)
    if server is None:
        return
    to = found[server]
    to.syns += " (SYN)" in text
    repeated = "(suspected)" in text or "[TCP Keep-Alive" in text or "Zero Window Probe" in text
    length = next((int(LENGTH.match(line)[1]) for line in frame if LENGTH.match(line)), 0)
    count(to, text, source == server)
    if length and "iWARP Marker" not in text and "Reassembled PDU in frame" not in text and \
            "TCP segment data" not in text and not repeated:
        to.unknown += 1


def count(to, text, from_server):
    to.requests += text.count("Request frame header")
    to.replies += text.count("Reply frame header")
    to.refused += text.count("= Connection rejected flag: True")
    lengths = [int(octets) for octets in re.findall(r"^ *ULPDU length: (\d+)", text, re.MULTILINE)]
    to.fpdus += len(lengths)
    to.longest = max([to.longest, *lengths])
    to.good += text.count("(Good CRC32)")
    to.bad += text.count("Bad CRC32")
    to.malformed += text.count("[Malformed Packet: iWARP") + text.count("[Malformed Packet: MPA")
    for name in re.findall(r"= OpCode: (.*) \(0x", text):
        to.opcodes[name] += 1
    if "= OpCode: Terminate" in text:
        to.terminates.append((from_server, text))
