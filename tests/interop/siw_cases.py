# SPDX-License-Identifier: MIT
"""The cases of the interop tests. Each is a function of a Bench that raises Failed when it is not
good, with the settings of siw it needs and what the wire must show."""

import itertools
import re
import time

from bench import RPING_MAX, RPING_RACE, Failed, expect, last

# Octets of each Read and Write -> iterations; from the least that rping takes to the most.
SIZES = {23: 20, 32: 10, 64: 100, 4096: 20, 16384: 10, RPING_MAX: 10}
ROW = 50 # connections one after the other
ROW_S = 20 # one of them at most: emulation; one that hangs does so until something gives up


class Case:
    """What to do, and under which settings."""

    def __init__(self, name, action, quick=True, mtu=1500, siw=None, crc=None, terminates=0,
                 guest_listens=True, refusals=0, rows=""):
        self.name, self.action, self.quick, self.mtu = name, action, quick, mtu
        self.siw = siw or {}
        self.crc = crc # True: every FPDU has a good one; False: none has one; None: not judged
        # On the wire, from the guest (+) or from us (-); None: one from the guest or none, as it
        # comes: its kernel may say that a process was killed.
        self.terminates = terminates
        self.guest_listens = guest_listens # where Terminates are counted
        self.refusals = refusals # Replies with the reject flag
        self.rows = rows


# ---- rping and ndkping ---------------------------------------------------------------------------

def rping_client(options, sizes=SIZES):
    """W-118: rping in the guest against ndkping -s; both verify what they get."""
    def action(bench):
        server, port = bench.ping_server("-P", "-V", "-S", RPING_MAX, options=options)
        for size, count in sizes.items():
            bench.must(bench.rping(port, f"-V -S {size} -C {count}"))
            wait_for(lambda: re.search(rf": {count} iterations of up to", server.output),
                     f"ndkping -s has not counted {count} iterations of {size} octets", server)
        if len(re.findall(r"the peer closed the connection \(FIN\)", server.output)) != len(sizes):
            raise Failed("not every connection ended gracefully at ndkping -s")
    return action


def rping_server(options, sizes=SIZES):
    """W-119: ndkping -c against rping in the guest; both verify what they get."""
    def action(bench):
        server, port = bench.rping_server()
        for size, count in sizes.items():
            text = bench.ping(port, "-V", "-S", size, "-C", count, options=options).must()
            expect(text, f"{count} iterations of {size} octets, verified", "ndkping -c")
        status = server.end()
        if status != 137:
            raise Failed(f"rping -s ended by itself: exit status {status}: {last(server.output)}")
    return action


def wait_for(condition, what, server):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what}: {last(server.output)}")
        time.sleep(0.02)


def ping_cases():
    on = {True: "on", False: "off"}
    for mtu, crc, p2p in itertools.product((1500, 9000), (True, False), (True, False)):
        options = f"crc={int(crc)},p2p={int(p2p)}"
        siw = {"mpa_crc_required": crc, "peer_to_peer": p2p}
        quick = mtu == 1500 and crc == p2p or mtu == 9000 and crc and not p2p
        what = f"CRC {on[crc]}, peer-to-peer {on[p2p]}, MTU {mtu}"
        yield Case(f"rping -c to ndkping -s: {what}", rping_client(options), quick, mtu, siw, crc,
                   rows="W-118")
        yield Case(f"ndkping -c to rping -s: {what}", rping_server(options), quick, mtu, siw, crc,
                   rows="W-119")
    few = {64: 20, 4096: 5}
    for ours in (True, False):
        options, siw = f"crc={int(ours)}", {"mpa_crc_required": not ours}
        who = "us" if ours else "siw"
        yield Case(f"rping -c to ndkping -s: CRC asked for by {who} alone",
                   rping_client(options, few), siw=siw, crc=True)
        # As responder siw obeys; it does not ask for what its initiator has not asked for.
        yield Case(f"ndkping -c to rping -s: CRC asked for by {who} alone",
                   rping_server(options, few), siw=siw, crc=ours)
    gso = {64: 10, RPING_MAX: 20}
    yield Case("rping -c to ndkping -s: siw offering its GSO flag", rping_client("", gso),
               siw={"try_gso": True}, crc=True)
    yield Case("ndkping -c to rping -s: siw offering its GSO flag", rping_server("", gso),
               siw={"try_gso": True}, crc=True)
    yield Case("ndkping -c to rping -s: FPDUs of 512 octets", rping_server("fpdu_max=512", gso),
               crc=True)


# ---- Revision 1, and messages --------------------------------------------------------------------

def sends_to_us(options):
    def action(bench):
        server, port = bench.talk_server("recv:16", "send:16", options=options)
        bench.must(bench.run(f"rdma_client -s {bench.here} -p {port}"))
        server.must()
    return action


def sends_to_siw(options):
    def action(bench):
        port = bench.port()
        server = bench.guest_server("rdma_server -p {port}", port)
        bench.talk(port, "send:16", "recv:16", options=options).must()
        bench.must(server)
    return action


def rping_client_revision_1(bench):
    """siw's own responder cannot read over revision 1, ours can."""
    rping_client("", {64: 20, 4096: 5})(bench)


def siw_speaks_first(options):
    """W-120: a server that sends as soon as it has accepted."""
    def action(bench):
        port = bench.port()
        server = bench.guest_server("ucmatose -p {port} -S 100 -C 3", port)
        bench.talk(port, *["recv:100"] * 3, *["send:100"] * 3, options=options).must()
        bench.must(server)
    return action


def we_speak_first(bench):
    """Possible with the peer-to-peer model only: without it siw's initiator must send first."""
    server, port = bench.talk_server(*["send:100"] * 3, *["recv:100"] * 3)
    bench.must(bench.run(f"ucmatose -s {bench.here} -p {port} -S 100 -C 3"))
    server.must()


def message_cases():
    for revision, crc in itertools.product((1, 2), (True, False)):
        what = f"revision {revision}, CRC {'on' if crc else 'off'}"
        siw = {"mpa_version": revision, "mpa_crc_required": crc}
        yield Case(f"Sends, siw connects: {what}", sends_to_us(f"crc={int(crc)}"), siw=siw, crc=crc)
        yield Case(f"Sends, we connect: {what}",
                   sends_to_siw(f"crc={int(crc)},mpa_revision={revision}"), siw=siw, crc=crc)
    yield Case("rping -c to ndkping -s: revision 1", rping_client_revision_1,
               siw={"mpa_version": 1}, crc=True)
    yield Case("siw's server sends first: peer-to-peer off", siw_speaks_first("p2p=0"), crc=True,
               rows="W-120")
    yield Case("siw's server sends first: peer-to-peer on", siw_speaks_first(""), crc=True,
               rows="W-120")
    yield Case("our server sends first: peer-to-peer on", we_speak_first,
               siw={"peer_to_peer": True}, crc=True)


# ---- perftest ------------------------------------------------------------------------------------

TRANSFERS = {64: 20, 5000: 100, 65536: 20} # octets of each -> how many


def perftest(kind, octets, count, port):
    """-F: the clock of an emulated processor may change."""
    return f"ib_{kind}_bw -R -F -p {port} -s {octets} -n {count}"


def perftest_client(kind, options):
    """ib_..._bw in the guest is the client of ours."""
    def action(bench):
        for octets, count in TRANSFERS.items():
            server, port = bench.perf_server(kind, octets, count, options=options)
            bench.must(bench.run(f"{perftest(kind, octets, count, port)} {bench.here}"))
            server.must()
    return action


def perftest_server(kind, options):
    """Ours is the client of ib_..._bw in the guest."""
    def action(bench):
        for octets, count in TRANSFERS.items():
            port = bench.port()
            server = bench.guest_server(perftest(kind, octets, count, port), port)
            bench.perf(port, kind, octets, count, options=options).must()
            bench.must(server)
    return action


def perftest_cases():
    for kind, crc in itertools.product(("send", "write", "read"), (True, False)):
        options, siw = f"crc={int(crc)}", {"mpa_crc_required": crc}
        what = f"CRC {'on' if crc else 'off'}"
        yield Case(f"ib_{kind}_bw is the client: {what}", perftest_client(kind, options), crc, siw=siw,
                   crc=crc)
        yield Case(f"ib_{kind}_bw is the server: {what}", perftest_server(kind, options), crc, siw=siw,
                   crc=crc)


# ---- Refusals ------------------------------------------------------------------------------------

def nobody_listens(bench):
    text = bench.ping(bench.port(), "-C", 1).must(1)
    expect(text, "STATUS_CONNECTION_REFUSED", "ndkping -c")


def siw_refuses(bench):
    """ucmatose takes one client. It looks at further ones when it is done with the first, and rejects
    those that have come by then."""
    port = bench.port()
    server = bench.guest_server("ucmatose -p {port} -S 100 -C 1", port)
    go = bench.directory / f"{bench.case}.go"
    first = bench.talk(port, "recv:100", f"until:{go}", "send:100", "gone")
    wait_for(lambda: "recv:100: done" in first.output, "the first client has not got through", first)
    second = bench.talk(port, "recv:100")
    wait_for(lambda: connected(bench, port) == 2, "the second client is not there", second)
    bench.guest.must("sleep 1") # its Request is there, too
    go.touch()
    expect(second.must(1), "STATUS_CONNECTION_REFUSED", "talk")
    first.must()
    expect(server_output(server), "return status -12", "ucmatose") # what it calls a client too many
    go.unlink()


def server_output(command):
    command.wait()
    return command.output


def siw_refuses_crc(bench):
    """A siw that is strict about having no CRC."""
    _, port = bench.rping_server()
    text = bench.ping(port, "-C", 1, options="crc=1").must(1)
    expect(text, "STATUS_CONNECTION_REFUSED", "ndkping -c")
    bench.ping(port, "-V", "-C", 5, options="crc=0").must()


def we_refuse(bench):
    server, port = bench.talk_server("refuse")
    command = bench.rping(port, "-C 1")
    if command.wait() == 0:
        raise Failed("rping -c is content although it was refused")
    expect(command.output, "RDMA_CM_EVENT_REJECTED", "rping -c")
    server.must()


def refusal_cases():
    yield Case("nobody listens in the guest", nobody_listens)
    yield Case("siw's consumer refuses us", siw_refuses, crc=True, refusals=1)
    yield Case("siw refuses our CRC", siw_refuses_crc, siw={"mpa_crc_strict": True}, refusals=1)
    yield Case("we refuse siw", we_refuse, refusals=1)


# ---- Terminates ----------------------------------------------------------------------------------

# Not before siw has told its consumer of the connection: an end in that moment is a `kernel BUG` of the
# guest's iwcm.c (seen with 6.1: a first FPDU overlooked, then both it and a bad one read at once).
SETTLED = "p2p=0,first_fpdu_delay_us=300000"


def siw_terminates(step, reason):
    """siw swaps the two nibbles and the flags of a Terminate; what it means must be told."""
    def action(bench):
        server, port = bench.rping_server()
        text = bench.talk(port, step, "gone", options=SETTLED).must()
        expect(text, rf"(?m)^ended: Terminate received.*{reason}", "talk")
        bench.ping(port, "-V", "-C", 5).must()
        server.end()
    return action


def we_terminate(bench):
    """siw's server reads from where our client never said; it must learn that and end, too."""
    server, port = bench.rping_server("-V")
    text = bench.talk(port, "advert-wrong", "gone", options=SETTLED).must()
    expect(text, r"(?m)^ended: Terminate sent.*\(0/1/00\)", "talk")
    server.wait() # 0 even now; what it says tells that its Read did not end well
    expect(server.output, "wait for RDMA_READ_COMPLETE", "rping -s")
    expect(bench.guest.dmesg(), "got TERMINATE", "the guest's kernel")


def terminate_cases():
    yield Case("siw terminates: Write to a token that is none",
               siw_terminates("write-wrong", r"\(1/1/00\)"), crc=True, terminates=1)
    yield Case("siw terminates: Read from a token that is none",
               siw_terminates("read-wrong", r"\(0/1/00\)"), crc=True, terminates=1)
    yield Case("siw terminates: a Send longer than its receive",
               siw_terminates("send:64", r"\(1/2/02\)"), crc=True, terminates=1)
    yield Case("we terminate: Read of siw from a token that is none", we_terminate, crc=True,
               terminates=-1)


# ---- Ends ----------------------------------------------------------------------------------------

def connected(bench, port):
    return int(bench.guest.must(f"connected {port}").strip())


def guest_server_killed(bench):
    server, port = bench.rping_server()
    client = bench.ping(port, "-V", "-S", 4096)
    wait_for(lambda: connected(bench, port), "ndkping -c is not connected", client)
    server.end()
    text = client.must(1)
    expect(text, "connection lost|STATUS_", "ndkping -c")


def guest_client_killed(bench):
    server, port = bench.ping_server("-P", "-V", "-v", "-S", 4096)
    client = bench.rping(port, "-V -S 4096 -C 1000000", 600)
    wait_for(lambda: server.output.count("ping data") > 20, "rping -c does not ping", server)
    client.end()
    wait_for(lambda: "disconnected:" in server.output, "ndkping -s has not noticed", server)
    bench.must(bench.rping(port, "-V -S 64 -C 10"))


def our_client_killed(bench):
    server, port = bench.rping_server()
    client = bench.ping(port, "-V", "-v", "-S", 4096)
    wait_for(lambda: client.output.count("ping data") > 20, "ndkping -c does not ping", client)
    client.end()
    bench.ping(port, "-V", "-C", 10).must()
    if server.done.is_set():
        raise Failed(f"rping -s has ended: {last(server.output)}")


def our_server_killed(bench):
    server, port = bench.ping_server("-V", "-v", "-S", 4096)
    client = bench.rping(port, "-V -S 4096 -C 1000000", 600)
    wait_for(lambda: server.output.count("ping data") > 20, "rping -c does not ping", server)
    server.end()
    # rping itself may wait for ever then; siw must have closed.
    wait_for(lambda: not connected(bench, port), "siw has not closed", client)
    client.end()


def end_cases():
    yield Case("rping -s is killed under ndkping -c", guest_server_killed, terminates=None)
    yield Case("rping -c is killed under ndkping -s", guest_client_killed, terminates=None,
               guest_listens=False)
    yield Case("ndkping -c is killed under rping -s", our_client_killed)
    yield Case("ndkping -s is killed under rping -c", our_server_killed, guest_listens=False)


# ---- Many connections ----------------------------------------------------------------------------

def in_a_row(options):
    """A first FPDU that comes within a millisecond of siw's Reply may be overlooked; then something
    must follow it, or both ends wait for ever. How often it did is told, not judged: a busy machine that
    answers late is nudged, too."""
    def action(bench):
        server, port = bench.rping_server()
        slowest, nudges = 0.0, 0
        for number in range(ROW):
            began = time.monotonic()
            client = bench.ping(port, "-V", "-C", 2, options=options)
            client.limit = ROW_S
            text = client.must()
            slowest = max(slowest, time.monotonic() - began)
            expect(text, "2 iterations of 64 octets, verified", f"connection {number + 1}")
            nudges += "one empty Write follows" in text
        server.end()
        return f"slowest {slowest:.2f} s, {nudges} nudged"
    return action


def in_a_row_to_us(bench):
    server, port = bench.ping_server("-P", "-V")
    bench.must(bench.run(
        f"n=0; while [ $n -lt {ROW} ]; do n=$((n + 1)); "
        f"timeout -s KILL {ROW_S} rping -c -a {bench.here} -p {port} -V -C 2 >/tmp/row 2>&1 || "
        f"grep -q '{RPING_RACE}' /tmp/row || {{ tail -n 3 /tmp/row; exit 1; }}; done", 600))
    wait_for(lambda: len(re.findall(r": 2 iterations of up to", server.output)) == ROW,
             f"ndkping -s has not served {ROW}", server)


def row_cases():
    yield Case(f"{ROW} connections in a row to siw: peer-to-peer on", in_a_row(""), crc=True)
    yield Case(f"{ROW} connections in a row to siw: peer-to-peer off", in_a_row("p2p=0"),
               crc=True)
    yield Case(f"{ROW} connections in a row to siw: first FPDU after 100 ms",
               in_a_row("first_fpdu_delay_us=100000"), quick=False, crc=True)
    yield Case(f"{ROW} connections in a row from siw", in_a_row_to_us, crc=True)


def all_cases():
    return [*ping_cases(), *message_cases(), *perftest_cases(), *refusal_cases(), *terminate_cases(), *end_cases(),
            *row_cases()]
