#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkping_loopback.sh BUILD_DIRECTORY - ndkping as two processes over loopback, IPv4 and IPv6: every
# size class verified at both ends, plain rping mode, many clients, interruptions, lost peers, and
# what wrong arguments are answered.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- Good runs -----------------------------------------------------------------------------------

# exact ADDRESS SIZE COUNT: all octets verified at both ends
exact() {
    start_server "$1" -V
    run_client -V -S "$2" -C "$3"
    expect_status 0 "client $1, $2 octets"
    expect_text client.out "$3 iterations of $2 octets, verified at both ends" "client, $2 octets"
    join_server
    expect_status 0 "server $1, $2 octets"
    expect_text server.out ": $3 iterations of $2 octets, verified" "server, $2 octets"
}

# plain ADDRESS SIZE: as rping, without private data; the server checks the text
plain() {
    start_server "$1" -S "$2" -V -v
    run_client -S "$2" -C 5 -v
    expect_status 0 "plain client $1, $2 octets"
    expect_text client.out "ping data: rdma-ping-4: EFGHIJ" "plain client, $2 octets"
    join_server
    expect_status 0 "plain server $1, $2 octets"
    expect_text server.out "server ping data: rdma-ping-0: ABCDEF" "plain server, $2 octets"
}

good_runs() {
    for size in 1 22 23 64 4096 65536 1048576; do
        exact "$1" "$size" 10
    done
    for size in 64 4096 65535; do
        plain "$1" "$size"
    done
    say "$1: good"
}

# Below 23 octets there is no room for text: exact without being asked.
small_without_verify() {
    start_server 127.0.0.1
    run_client -S 5 -C 3
    expect_status 0 "client, 5 octets without -V"
    expect_text client.out "verified at both ends" "client, 5 octets without -V"
    join_server
    expect_status 0 "server, 5 octets without -V"
}

default_addresses() {
    : >"$scratch/server.out"
    "$ndkping" -s -p 0 >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    wait_until 20 grep -q '^listening on 127.0.0.1:' "$scratch/server.out" ||
        fail "a server without an address does not listen on 127.0.0.1"
    address=127.0.0.1
    port=$(sed -n 's/^listening on 127.0.0.1:\([0-9]*\)$/\1/p' "$scratch/server.out")
    run_client -I 127.0.0.1 -C 2
    expect_status 0 "client of a server without an address"
    join_server
    expect_status 0 "server without an address"
}

# Each way of answering asynchronous calls, at both ends.
asynchronous() {
    for mode in always early random:1 random:2; do
        export SOFTNDK_PEND=$mode
        exact 127.0.0.1 4096 20
    done
    unset SOFTNDK_PEND
    export SOFTNDK_OPTIONS=ndkpi=1.2
    exact 127.0.0.1 4096 5 # NdkAccept and NdkCompleteConnect instead of the extended ones
    unset SOFTNDK_OPTIONS
    say "asynchronous calls: good"
}

persistent() {
    start_server 127.0.0.1 -P
    clients=
    for size in 1 100 5000 70000; do
        timeout "$step_s" "$ndkping" -c -a "$address" -p "$port" -V -S "$size" -C 50 \
            >"$scratch/client-$size.out" 2>&1 &
        clients="$clients $!"
        started="$started $!"
    done
    for client in $clients; do
        join "$client" "$step_s"
        expect_status 0 "one of four clients at once"
    done
    run_client -C 3
    expect_status 0 "a client behind four others"
    run_client --table
    expect_status 0 "the table"
    rows=$(grep -cE '^(send|write|read) +(64|4096|1048576) +[0-9.]+ +[0-9]+ +[0-9.]+$' \
        "$scratch/client.out")
    [ "$rows" -eq 9 ] || fail "the table has $rows rows (need 9)"
    kill -TERM "$server"
    join_server
    expect_status 0 "persistent server, SIGTERM"
    say "persistent server: good"
}

# ---- Ends ----------------------------------------------------------------------------------------

iterates() { grep -q '^iteration 3:' "$scratch/endless.out"; }

# A client without a count, in the background; $client is its process.
start_endless_client() {
    : >"$scratch/endless.out"
    "$ndkping" -c -a "$address" -p "$port" -V -S 4096 -v "$@" \
        >"$scratch/endless.out" 2>"$scratch/endless.err" &
    client=$!
    started="$started $client"
    wait_until 30 iterates || fail "the client does not iterate"
}

server_killed() {
    start_server 127.0.0.1 -V
    start_endless_client
    kill -KILL "$server"
    wait "$server" 2>/dev/null || true
    forget "$server"
    join "$client" 30
    expect_status 1 "client whose server was killed"
    expect_text endless.err "connection lost" "client whose server was killed"
}

client_killed() {
    start_server 127.0.0.1 -V
    start_endless_client -C 100000000
    kill -KILL "$client"
    wait "$client" 2>/dev/null || true
    forget "$client"
    join_server
    expect_status 1 "server whose client was killed"
}

interrupted() {
    start_server 127.0.0.1
    start_endless_client
    kill -INT "$client"
    join "$client" 30
    expect_status 0 "client without a count, SIGINT"
    expect_text endless.out "verified at both ends" "client without a count, SIGINT"
    join_server
    expect_status 0 "server of an interrupted client"

    start_server 127.0.0.1
    start_endless_client
    kill -TERM "$server"
    join_server
    expect_status 0 "server, SIGTERM in the middle"
    join "$client" 30
    expect_status 1 "client whose server was interrupted"
}

sizes_differ() {
    start_server 127.0.0.1 -S 100
    run_client -S 200 -C 1
    expect_status 1 "plain client, 200 octets against 100"
    join_server
    expect_status 1 "plain server, 100 octets against 200"
    expect_text server.err "need 100" "plain server, 100 octets against 200"
}

nobody_there() {
    start_server 127.0.0.1
    kill -TERM "$server"
    join_server
    run_client -C 1
    expect_status 1 "client without a server"
    expect_text client.err STATUS_CONNECTION_REFUSED "client without a server"
}

# ---- Wrong arguments -----------------------------------------------------------------------------

# wrong TEXT PROGRAM ARGUMENTS...: exit status 2, and a message that has TEXT in it
wrong() {
    text=$1
    shift
    status=0
    timeout 20 "$@" >"$scratch/wrong.out" 2>"$scratch/wrong.err" || status=$?
    expect_status 2 "$*"
    expect_text wrong.err "$text" "$*"
    [ ! -s "$scratch/wrong.out" ] || fail "$*: something on stdout"
}

wrong_arguments() {
    wrong "one of --server and --client" "$ndkping"
    wrong "not both" "$ndkping" -s -c
    wrong "'65536'" "$ndkping" -s -p 65536
    wrong "'7174x'" "$ndkping" -s -p 7174x
    wrong "'-1'" "$ndkping" -s -p -1
    wrong "'0'" "$ndkping" -c -a 127.0.0.1 -p 0
    wrong "'0'" "$ndkping" -c -a 127.0.0.1 -S 0
    wrong "'16777217'" "$ndkping" -c -a 127.0.0.1 --size 16777217
    wrong "'64k'" "$ndkping" -c -a 127.0.0.1 -S 64k
    wrong "'0'" "$ndkping" -c -a 127.0.0.1 -C 0
    wrong "'1e3'" "$ndkping" -c -a 127.0.0.1 --count=1e3
    wrong "'18446744073709551616'" "$ndkping" -c -a 127.0.0.1 -C 18446744073709551616
    wrong "'localhost'" "$ndkping" -c -a localhost
    wrong "'127.0.0.1:80'" "$ndkping" -c -a 127.0.0.1:80
    wrong "'nowhere'" "$ndkping" -c -a 127.0.0.1 -I nowhere
    wrong "server's address" "$ndkping" -c
    wrong "--table" "$ndkping" -s --table
    wrong "--persistent" "$ndkping" -c -a 127.0.0.1 -P
    wrong "--bogus" "$ndkping" -s --bogus
    wrong "-q" "$ndkping" -s -q
    wrong "-S" "$ndkping" -s -S
    wrong "more" "$ndkping" -c -a 127.0.0.1 more
    wrong "--bogus" "$ndkinfo" --bogus
    wrong "no-such-adapter" "$ndkinfo" no-such-adapter
    wrong "--options" "$ndkinfo" --options --json
    say "wrong arguments: good"
}

# ---- ndkinfo -------------------------------------------------------------------------------------

information() {
    "$ndkinfo" 127.0.0.1 >"$scratch/info.out" || fail "ndkinfo 127.0.0.1: exit status $?"
    expect_text info.out "RdmaTechnology: iWARP" "ndkinfo 127.0.0.1"
    if grep -vE '^[A-Za-z]+: .+$' "$scratch/info.out"; then
        fail "ndkinfo: lines that are not 'Name: value'"
    fi
    "$ndkinfo" --json >"$scratch/json.out" || fail "ndkinfo --json: exit status $?"
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import json, sys
adapters = json.load(open(sys.argv[1]))["Adapters"]
assert any(a["Loopback"] and a["MaxCqDepth"] > 0 for a in adapters)' "$scratch/json.out" ||
            fail "ndkinfo --json: not the JSON that is promised"
    fi
    "$ndkinfo" --options >"$scratch/options.out" || fail "ndkinfo --options: exit status $?"
    expect_text options.out connect_ms "ndkinfo --options"
}

wrong_arguments
information
good_runs 127.0.0.1
if has_ipv6_loopback; then
    good_runs ::1
else
    say "::1: not here, left out"
fi
small_without_verify
default_addresses
sizes_differ
nobody_there
asynchronous
persistent
server_killed
client_killed
interrupted
say "good"
