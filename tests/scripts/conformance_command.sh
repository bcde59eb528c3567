#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkconform's command line, what it writes, and what becomes of one end when the other is gone,
# stopped, or no ndkconform at all.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"
ndkconform=$build/bin/ndkconform

# refused <sentence> <argument...>: exit status 2, and the sentence is the first line.
refused() {
    sentence=$1
    shift
    status=0
    "$ndkconform" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" = 2 ] || fail "ndkconform $*: exit status $status, need 2"
    said=$(sed -n 1p "$scratch/err")
    [ "$said" = "ndkconform: $sentence" ] || fail "ndkconform $*: says '$said', need '$sentence'"
}

say "wrong command lines"
refused "unknown option --frob" --frob
refused "--limit: have 0, need seconds, 1 to 86400" --limit 0
refused "--limit: have 99999999999, need seconds, 1 to 86400" --limit 99999999999 CQ-001
refused "--idle: have -1, need seconds, 0 to 86400" --serve --idle -1
refused "--ndkpi: have x, need a version such as 2.1" --ndkpi x
refused "--options: have nothing, need a value" --options
refused "--junit: have --json, need a value" --junit --json CQ-001
refused "--serve takes neither --peer, --list nor cases: the client says what runs" --serve CQ-001
refused "--serve takes neither --json, --junit nor --answers: the client reports" --serve --json
refused "--late goes with --serve" --late 5 CQ-001
refused "--idle goes with --serve" CQ-001 --idle 5
refused "--ipv6 is --addr ::1: not together with --addr 127.0.0.1" --ipv6 --addr 127.0.0.1
refused "no case is named nosuch; --list shows them" nosuch
refused "--peer 127.0.0.1: not an address with a port" --peer 127.0.0.1 CQ-001
refused "--addr nonsense: not an address" --addr nonsense CQ-001

say "what cannot be written"
refused "$scratch/none/x: cannot be written" --junit "$scratch/none/x" CQ-001
refused "$scratch/none/x: cannot be written" --answers "$scratch/none/x" CQ-001
if [ -c /dev/full ]; then
    refused "/dev/full: could not be written" --junit /dev/full CQ-001
    refused "/dev/full: could not be written" --answers /dev/full CQ-001
    for what in CQ-001 --json --list --help --version; do
        status=0
        "$ndkconform" "$what" CQ-001 >/dev/full 2>"$scratch/err" || status=$?
        [ "$status" = 2 ] || fail "ndkconform $what > /dev/full: exit status $status, need 2"
        grep -q "standard output: could not be written" "$scratch/err" || fail "$what: no reason"
    done
fi

say "documents"
"$ndkconform" --json --junit "$scratch/junit.xml" --answers "$scratch/answers" CQ-001 CQ-020 \
    >"$scratch/cases.json" 2>"$scratch/err" || fail "cases failed"
"$ndkconform" --list --json cq >"$scratch/list.json"
"$ndkconform" --list cq >"$scratch/list"
python3 - "$scratch" <<'END' || fail "the documents are not what they say"
import json, sys, xml.etree.ElementTree as tree
at = sys.argv[1]
cases = json.load(open(at + "/cases.json"))
assert [c["id"] for c in cases["cases"]] == ["CQ-001", "CQ-020"], cases
assert (cases["passed"], cases["failed"], cases["skipped"]) == (1, 0, 1), cases
names = [c.get("name").split()[0] for c in tree.parse(at + "/junit.xml").iter("testcase")]
assert names == ["CQ-001", "CQ-020"], names
assert any(line.startswith("NdkCreateCq STATUS_SUCCESS") for line in open(at + "/answers"))
ids = [c["id"] for c in json.load(open(at + "/list.json"))["cases"]]
assert ids == [line.split()[0] for line in open(at + "/list")], ids
END

is_serving() {
    peer=$(sed -n 's/^ndkconform: serving on //p' "$scratch/kit.out" | tail -n 1)
    [ -n "$peer" ]
}

serve() {
    : >"$scratch/kit.out"
    "$ndkconform" --serve --limit 20 "$@" >"$scratch/kit.out" 2>"$scratch/kit.err" &
    server=$!
    started="$started $server"
    wait_until 60 is_serving || fail "the serving kit does not serve"
}

# A line of the client's, so that it is in the middle of the cases.
has_begun() {
    grep -q "^PASS" "$scratch/out"
}

client() {
    : >"$scratch/out"
    "$ndkconform" --peer "$peer" "$@" >"$scratch/out" 2>"$scratch/err" &
    client=$!
    started="$started $client"
    wait_until 120 has_begun || fail "the client has not begun"
}

say "the port is taken; its visitors are no ndkconform"
serve --idle 60
status=0
"$ndkconform" --serve --addr "$peer" >"$scratch/out" 2>"$scratch/err" || status=$?
[ "$status" = 2 ] || fail "a second one on the same port: exit status $status, need 2"
grep -q "STATUS_SHARING_VIOLATION" "$scratch/err" || fail "a second one on the same port: no reason"
python3 - "$peer" <<'END'
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 4000, b"MPA ID Req Frame\x40\x01\xff\xff"):
    with socket.create_connection((host, int(port))) as s:
        s.sendall(junk)
END
"$ndkconform" --peer "$peer" --limit 60 data >"$scratch/out" 2>"$scratch/err" || fail "cases failed"
join "$server" 60
expect_status 0 "the serving kit"

say "the client is killed: the next one is served"
serve --idle 60
client --limit 60
kill -9 "$client"
join "$client" 60
is_free() {
    grep -q "the client is gone without a word" "$scratch/kit.err"
}
wait_until 120 is_free || fail "the serving kit has not noticed"
serves_again() {
    [ "$(grep -c '^ndkconform: serving on ' "$scratch/kit.out")" -ge 2 ]
}
wait_until 60 serves_again || fail "the serving kit does not serve again"
is_serving
"$ndkconform" --peer "$peer" --limit 60 data >"$scratch/out" 2>"$scratch/err" || fail "cases failed"
join "$server" 60
expect_status 0 "the serving kit"

say "the serving one is killed: its cases fail with that reason, the client ends"
serve --idle 60
client --limit 60 data DIS-001 DIS-002 'CON-*' 'CQ-0*'
kill -9 "$server"
join "$server" 60
join "$client" 120
[ "$status" = 0 ] || [ "$status" = 1 ] || fail "the client: exit status $status, need 0 or 1"
tail -n 1 "$scratch/out" | grep -q "passed, .* failed" || fail "the client has no last line"
grep "^FAIL" "$scratch/out" | grep -v "the peer is gone" >"$scratch/other" || true
[ "$(wc -l <"$scratch/other")" -le 1 ] || fail "more than the case that ran fails otherwise"

say "the serving one is stopped: cases fail by their limits, and it goes on when it can"
serve --idle 60
kill -STOP "$server"
status=0
"$ndkconform" --peer "$peer" --limit 1 data >"$scratch/out" 2>"$scratch/err" || status=$?
kill -CONT "$server"
[ "$status" != 0 ] || fail "cases passed although the peer is stopped"
kill "$server"
join "$server" 60

echo "conformance_command: good"
