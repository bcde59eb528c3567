#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the files of this directory of packet captures.

    make.py CAPTURE.pcap...

For each capture two files, of its name: NAME.streams, the octets of each TCP connection, and
NAME.messages, what tshark says is in them. README.md tells their formats. Needs tshark; run once, by
hand, when a capture is added. Captures are Ethernet, IPv4, without VLANs.
"""

import collections
import pathlib
import struct
import subprocess
import sys
import xml.etree.ElementTree as tree

HERE = pathlib.Path(__file__).resolve().parent


def packets(path):
    """The Ethernet frames of a pcap file."""
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    if struct.unpack(order + "I", data[20:24])[0] != 1:
        sys.exit(f"{path}: not Ethernet")
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def connections(path):
    """[(octets of the initiator, octets of the responder)], in the order of their SYNs."""
    found = collections.OrderedDict()
    for frame in packets(path):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:14 + struct.unpack(">H", frame[16:18])[0]]
        tcp = ip[(ip[0] & 15) * 4:]
        ends = (ip[12:16] + tcp[0:2], ip[16:20] + tcp[2:4])
        sequence, flags = struct.unpack(">I", tcp[4:8])[0], tcp[13]
        if flags & 0x12 == 0x02:  # SYN of the initiator: a new connection
            found[ends] = {ends[0]: [sequence + 1, bytearray()], ends[1]: [None, bytearray()]}
        key = ends if ends in found else ends[::-1]
        if key not in found:
            continue
        stream = found[key][ends[0]]
        if flags & 0x02:
            stream[0] = sequence + 1
            continue
        payload = tcp[(tcp[12] >> 4) * 4:]
        at = (sequence - stream[0]) & 0xffffffff if stream[0] is not None else 0
        if at <= len(stream[1]) and at + len(payload) > len(stream[1]):
            stream[1][at:] = payload  # in order, or sent again
        elif payload and at > len(stream[1]) and at < 0x80000000:
            sys.exit(f"{path}: octets are missing")
    return [tuple(bytes(s[1]) for s in both.values()) for both in found.values()]


def value(proto, name):
    """The octets of a field as text, or None."""
    for field in proto.iter("field"):
        if field.get("name") == name:
            return field.get("show")
    return None


def startup(proto, kind):
    flags = int(next(f for f in proto.iter("field")
                     if f.get("name") == "iwarp_mpa.crc_flag").get("unmaskedvalue"), 16)
    return (f"{kind} revision {value(proto, 'iwarp_mpa.rev')} flags {flags:02x} "
            f"data {value(proto, 'iwarp_mpa.pdlength')}")


def fpdu(mpa, rdmap):
    check = next((f.get("showname") for f in mpa.iter("field")
                  if f.get("name") == "iwarp_mpa.crc_check"), "")
    crc = "good" if "Good" in check else "bad" if "Bad" in check else "none"
    words = [value(mpa, "iwarp_mpa.ulpdulength")]
    words.append("last" if value(rdmap, "iwarp_ddp.last_flag") == "1" else "more")
    words.append("opcode %d" % int(value(rdmap, "iwarp_rdma.opcode"), 0))
    if value(rdmap, "iwarp_ddp.tagged_flag") == "1":
        words.append("stag %08x" % int(value(rdmap, "iwarp_ddp.stag").replace(":", ""), 16))
        words.append("to %016x" % int(value(rdmap, "iwarp_ddp.tagged_offset").replace(":", ""), 16))
    else:
        words += ["%s %s" % (name, value(rdmap, f"iwarp_ddp.{name}")) for name in ("qn", "msn", "mo")]
    return " ".join(words + ["crc", crc])


def messages(path):
    """{(connection, direction): [lines]} as tshark sees them."""
    text = subprocess.run(["tshark", "-r", path, "--disable-protocol", "rpcordma", "-T", "pdml"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    lines = collections.defaultdict(list)
    initiators = {}
    for packet in tree.fromstring(text).iter("packet"):
        tcp = packet.find("proto[@name='tcp']")
        if tcp is None:
            continue
        stream, port = int(value(tcp, "tcp.stream")), value(tcp, "tcp.srcport")
        key = (stream, ">" if initiators.setdefault(stream, port) == port else "<")
        mpa = None
        for proto in packet.iter("proto"):
            if proto.get("name") == "iwarp_mpa":
                mpa = proto
                for kind, name in (("req", "Request"), ("rep", "Reply")):
                    if value(proto, f"iwarp_mpa.{kind}") is not None:
                        lines[key].append(startup(proto, name))
            elif proto.get("name") == "iwarp_ddp_rdmap":
                lines[key].append(fpdu(mpa, proto))
    return lines


def main():
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        seen = messages(path)
        with open(HERE / f"{path.stem}.streams", "wb") as streams, \
                open(HERE / f"{path.stem}.messages", "w") as text:
            for number, both in enumerate(connections(path)):
                for direction, octets in zip("><", both):
                    streams.write(struct.pack(">I", len(octets)) + octets)
                    for line in seen[number, direction]:
                        text.write(f"{number} {direction} {line}\n")


main()
