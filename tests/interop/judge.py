# SPDX-License-Identifier: MIT
"""tshark's view of the wire: what stands in each connection, by the port of its server.

Only the iWARP protocols count: what payload looks like may mislead the dissectors above, and
rpcordma would take some of it, so that one is off. A port of ours may be one that tshark knows for
another protocol, IRC's, say: MPA, which it knows by the contents, comes first."""

import collections
import pathlib
import re
import struct
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


def segment(packet):
    """The two ends of a TCP segment over IPv4 and Ethernet, and the sequence number if it is the SYN of
    a client; or None."""
    if len(packet) < 54 or packet[12:14] != b"\x08\x00" or packet[23] != 6:
        return None
    tcp = 14 + 4 * (packet[14] & 15)
    ends = frozenset((packet[26:30] + packet[tcp:tcp + 2], packet[30:34] + packet[tcp + 2:tcp + 4]))
    is_first = packet[tcp + 13] & 0x12 == 0x02
    return ends, packet[tcp + 4:tcp + 8] if is_first else None


def split(capture):
    """Each pair of ports once a file: a client may get a port again, and tshark's dissector of MPA
    takes what begins then for more of the connection before. Returns the files."""
    data = capture.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    files, seen, at = [bytearray(data[:24])], {}, 24
    while at + 16 <= len(data):
        end = at + 16 + struct.unpack_from(order + "I", data, at + 8)[0]
        ends, syn = segment(data[at + 16:end]) or (None, None)
        turn, last = seen.get(ends, (0, None))
        if syn and syn != last: # the same one again is TCP's
            turn += last is not None
            seen[ends] = turn, syn
        if turn == len(files):
            files.append(bytearray(data[:24]))
        files[turn] += data[at:end]
        at = end
    if len(files) == 1:
        return [capture]
    names = [capture.with_suffix(f".{turn + 1}.pcap") for turn in range(len(files))]
    for name, content in zip(names, files):
        name.write_bytes(content)
    return names


def dissect(capture, log):
    """Port of the server -> Connections. Raises OSError or CalledProcessError."""
    found = collections.defaultdict(Connections)
    for file in split(pathlib.Path(capture)):
        dissect_one(file, log, found)
    return found


def dissect_one(capture, log, found):
    command = ["tshark", "-n", "-r", str(capture), "--disable-protocol", "rpcordma",
               "-o", "tcp.try_heuristic_first:TRUE",
               "-o", "tcp.reassemble_out_of_order:TRUE", "-V",
               "-O", "tcp,iwarp_mpa,iwarp_ddp_rdmap"]
    servers = {}
    with open(log, "a") as errors, subprocess.Popen(
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
