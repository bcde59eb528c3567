# SPDX-License-Identifier: MIT
"""The rows of the table: what is measured, against what, and the line to reach.

The floor of a row does the same job: the same sizes, framing, CRC and number of messages a system
call, with both ends waiting in the same way. A bound is plain TCP too, but has a cost that softndk
cannot avoid and the floor does not have. docs/performance.md explains each."""

from figures import Check

KIB, MIB = 1 << 10, 1 << 20
TAGGED = 14 # octets of DDP and RDMAP header, which ndkperf's --fpdu counts and floor's does not

# How the ends of softndk work: by the consumer's polling, or threads that call it back.
POLLED = ("--wait", "spin", "--progress", "inline", "--completion", "local")
CALLED_BACK = ("--wait", "event", "--progress", "engine", "--completion", "local")
ADAPTIVE = ("--wait", "event", "--progress", "adaptive", "--completion", "local")


class Row:
    """`floor`, `softndk`, each of `bounds` and of `peers` take pairs.Programs and give a figure."""

    less_is_better = False
    once = False # does not vary from round to round

    def __init__(self, name, work, unit, floor, softndk, peers=None, checks=(), bounds=None,
                 often=1):
        self.name, self.work, self.unit = name, work, unit
        self.floor, self.softndk, self.peers = floor, softndk, peers or {}
        self.checks, self.bounds = checks, bounds or {}
        self.often = often # so many times the passes of other rows: runs differ more


class Less(Row):
    less_is_better = True


def figure(key, measure):
    return lambda programs: measure(programs)[key]


def from_floor(key, *arguments, times=1):
    return figure(key, lambda programs: programs.floor(*arguments, times=times))


def from_ndkperf(key, *arguments, times=1):
    return figure(key, lambda programs: programs.timed(*arguments, times=times))


def from_fabric(key, *arguments):
    return figure(key, lambda programs: programs.fabric(*arguments))


def from_ucx(key, test, size, count):
    return figure(key, lambda programs: programs.ucx(test, size, count))


# ---- half round trips ----------------------------------------------------------------------------

ASLEEP, ASKED = "the same, asleep in epoll", "the same, epoll asked before every recv()"


def latency(name, work, wait, how, peers, checks):
    bound = from_floor("t_avg_us", "--wait", wait, "--size", 64, "event")
    return Less(name, work, "us", from_floor("t_avg_us", "--wait", wait, "--size", 64, "pingpong"),
                from_ndkperf("t_avg_us", "--op", "send", "--mode", "lat", "-S", 64, "--crc", "off",
                             *how), peers, checks, {ASLEEP if wait == "block" else ASKED: bound})


SPINNING_PEERS = {
    "fabric": from_fabric("t_avg_us", "--wait", "spin", "--size", 64, "latency"),
    "fi_pingpong": figure("t_avg_us", lambda programs: programs.fi_pingpong(64, 30000)),
    "ucx_am": from_ucx("t_avg_us", "ucp_am_lat", 64, 100000),
}
SLEEPING_PEERS = {"fabric": from_fabric("t_avg_us", "--wait", "block", "--size", 64, "latency")}


def growth(count):
    """Half round trip over so many connections in turn, as a multiple of that over one. Measured
    for longer, so that each connection has its turn several times."""
    def growth_of(time):
        many, one = time(count), time(1)
        return lambda programs: many(programs) / one(programs)

    def floor(n):
        return from_floor("t_avg_us", "--wait", "spin", "--size", 64, "--sockets", n, "robin",
                          times=3)

    def softndk(n):
        return from_ndkperf("t_avg_us", "--op", "send", "--mode", "lat", "-S", 64, "--crc", "off",
                            "--round-robin", "-q", n, *POLLED, times=3)

    return Less(f"qps-{count}", f"64 B half round trip over {count} QPs in turn, to that over one",
                "x", growth_of(floor), growth_of(softndk), checks=[Check("floor", "<=", 1.3)])


# ---- one way -------------------------------------------------------------------------------------

def sends(name, work, gather, crc, peers, checks, how=POLLED):
    """One a sendmsg, or chains of so many; deep enough that receives do not run out. Called back,
    without chains: what a callback posts goes together."""
    chain = ("--defer", gather, "-Q", gather) if gather > 1 and how is POLLED else ()
    return Row(name, work, "M/s",
               from_floor("rate_Mps", "--wait", "spin" if how is POLLED else "block", "--size", 64,
                          "--gather", gather, "--crc", crc, "send"),
               from_ndkperf("rate_Mps", "--op", "send", "--mode", "rate", "-S", 64, "--crc", crc,
                            "-t", 1024, *chain, *how), peers, checks, often=2)


SEND_PEERS = {
    "fabric": from_fabric("rate_Mps", "--wait", "spin", "--size", 64, "--window", 64, "send"),
    "ucx_am": from_ucx("rate_Mps", "ucp_am_bw", 64, 300000),
    "ucx_tag": from_ucx("rate_Mps", "tag_bw", 64, 300000),
}


def text_of(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else \
        f"{size} B"


def writes(name, size, depth, crc, fpdu, gather, peers, bound):
    """`gather`: how many are posted as a DEFER chain, and a sendmsg of the floor has."""
    kind = f", FPDUs of {fpdu} octets" if fpdu < 60000 else ""
    chain = f", DEFER chains of {gather}" if gather > 1 else ""
    return Row(name, f"{text_of(size)} writes{kind}{chain}, depth {depth}, CRC {crc}", "MB/s",
               from_floor("MBps", "--size", size, "--fpdu", fpdu, "--gather", gather, "--crc", crc,
                          "write"),
               from_ndkperf("bw_avg_MBps", "--op", "write", "--mode", "bw", "-S", size, "-t", depth,
                            "--defer", gather, "--crc", crc, "--fpdu", fpdu + TAGGED, *POLLED),
               peers, [Check("floor", ">=", bound)], often=2 if size < 16 * KIB and peers else 1)


def write_peers(size, window, count):
    return {
        "fabric": from_fabric("MBps", "--wait", "spin", "--size", size, "--window", window,
                              "write"),
        "ucx_put": from_ucx("MBps", "ucp_put_bw", size, count),
    }


def reads(name, size, limit, chain, unit, floor_key, key, mode, checks):
    """`limit` requests are under way; twice as many are posted, in chains of `chain`."""
    chains = f", DEFER chains of {chain}" if chain > 1 else ""
    return Row(name, f"{text_of(size)} reads, {limit} at once{chains}, CRC off", unit,
               from_floor(floor_key, "--wait", "spin", "--size", size, "--window", limit, "read"),
               from_ndkperf(key, "--op", "read", "--mode", mode, "-S", size, "-t",
                            2 * limit, "--defer", chain, "--reads", limit, "--crc", "off",
                            "--fpdu", 65400 + TAGGED, *POLLED),
               {"fabric": from_fabric(floor_key, "--wait", "spin", "--size", size, "--window",
                                      limit, "read")}, checks)


# ---- the rest ------------------------------------------------------------------------------------

def registration():
    """The floor is softndk itself: the same two messages without registration."""
    arguments = ("--op", "fastreg", "--mode", "rate", "-S", 64, "--pages", 16, "--crc", "off",
                 *POLLED)
    return Row("fastreg", "fast-register 16 pages, request, answer that invalidates; the floor: "
               "softndk without registration", "M/s",
               from_ndkperf("rate_Mps", *arguments, "--no-reg"),
               from_ndkperf("rate_Mps", *arguments), checks=[Check("floor", ">=", 0.7)])


def connects(name, work, at_once):
    def plain(mode):
        return from_floor("conns_per_s", "--sockets", at_once, mode)

    return Row(name, work, "/s", plain("connect"),
               figure("conns_per_s", lambda programs: programs.ndkperf(
                   "--mode", "conn", "-q", at_once, "-n",
                   programs.connects * (1 if at_once == 1 else 5))),
               checks=[Check("floor", ">=", 0.6)],
               bounds={"the messages of MPA and both FINs": plain("mpa")},
               often=1 if at_once == 1 else 2)


def idle():
    row = Less("idle", "user memory of an idle connection", "KiB", None,
               lambda programs: programs.scale_test(1000)["KiB"],
               checks=[Check("value", "<=", 16)])
    row.once = True
    return row


AHEAD = Check("peer", "<", 1.0)

ROWS = [
    latency("lat-spin", "64 B half round trip, polling, inline progress", "spin", POLLED,
            SPINNING_PEERS, [Check("floor", "<=", 1.15), AHEAD]),
    latency("lat-event", "64 B half round trip, answered from the callback, threads asleep",
            "block", CALLED_BACK, SLEEPING_PEERS, [Check("floor", "<=", 1.05)]),
    latency("lat-adaptive", "64 B half round trip, answered from the callback, adaptive spinning; "
            "the floor spins", "spin", ADAPTIVE, None, [Check("floor", "<=", 1.7)]),
    sends("rate-chain", "64 B sends, DEFER chains of 32, CRC off", 32, "off", SEND_PEERS,
          [Check("floor", ">=", 0.6), Check("peer", ">=", 5)]),
    sends("rate-chain-crc", "64 B sends, DEFER chains of 32, CRC on", 32, "on", None,
          [Check("floor", ">=", 0.6)]),
    sends("rate-callback", "64 B sends posted from callbacks, CRC off; the floor: 64 a sendmsg, "
          "asleep", 64, "off", SEND_PEERS, [Check("floor", ">=", 0.6), Check("peer", ">=", 5)],
          CALLED_BACK),
    sends("rate-single", "64 B sends, posted one by one, CRC off", 1, "off", SEND_PEERS,
          [Check("floor", ">=", 0.9)]),
    writes("write-1m", MIB, 16, "off", 65400, 1, write_peers(MIB, 16, 400), 0.90),
    writes("write-1m-crc", MIB, 16, "on", 65400, 1, None, 0.90),
    writes("write-1m-1408-crc", MIB, 16, "on", 1408, 1, None, 0.85),
    writes("write-64k", 64 * KIB, 64, "off", 65400, 1, write_peers(64 * KIB, 64, 15000), 0.85),
    writes("write-64k-crc", 64 * KIB, 64, "on", 65400, 1, None, 0.85),
    writes("write-4k", 4 * KIB, 64, "off", 65400, 1, write_peers(4 * KIB, 64, 100000), 0.85),
    writes("write-4k-chain", 4 * KIB, 64, "off", 65400, 16, None, 0.85),
    writes("write-4k-chain-crc", 4 * KIB, 64, "on", 65400, 16, None, 0.85),
    reads("read-1m", MIB, 16, 1, "MB/s", "MBps", "bw_avg_MBps", "bw", [Check("floor", ">=", 0.85)]),
    reads("read-64", 64, 32, 16, "M/s", "rate_Mps", "rate_Mps", "rate",
          [Check("value", ">=", 1.0)]),
    registration(),
    connects("connect", "connect, accept, disconnect, one at a time", 1),
    connects("connect-64", "connect, accept, disconnect, 64 at once", 64),
    growth(10), growth(100), growth(1000),
    idle(),
]
