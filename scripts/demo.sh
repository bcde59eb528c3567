#!/bin/sh
# SPDX-License-Identifier: MIT
#
# demo.sh [build directory] - two processes, NDK consumers both, over loopback: one hundred
# iterations of 64 KiB that both ends verify, then the table of times and rates.
#
# Ends 0 if everything was verified. The servers it starts are the only processes it ends.
set -eu

cd "$(dirname "$0")/.."
ndkping=${1:-build}/bin/ndkping
address=127.0.0.1
server=

if [ ! -x "$ndkping" ]; then
    echo "demo: $ndkping is not there: run make build" >&2
    exit 1
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-demo.XXXXXX")

cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    echo "demo: $*" >&2
    for file in server.out server.err; do
        if [ -s "$scratch/$file" ]; then
            echo "demo: the last of $file:" >&2
            tail -n 5 "$scratch/$file" | cut -c 1-200 >&2
        fi
    done
    exit 1
}

# Starts a server on a port that the system chooses, and waits for the line that tells it.
start_server() {
    echo "\$ ndkping $*"
    : >"$scratch/server.out" # or the first look could read the last server's port
    "$ndkping" "$@" >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    tries=0
    port=
    while [ -z "$port" ]; do
        port=$(sed -n 's/^listening on .*:\([0-9][0-9]*\)$/\1/p' "$scratch/server.out" |
            head -n 1)
        [ -n "$port" ] && break
        kill -0 "$server" 2>/dev/null || fail "the server ended before it listened"
        tries=$((tries + 1))
        [ "$tries" -le 100 ] || fail "the server does not listen after 10 seconds"
        sleep 0.1
    done
    echo "listening on $address:$port (process $server)"
}

# One client, bounded in time; long output is shown by its ends, long lines by their beginning.
run_client() {
    echo "\$ ndkping $*"
    status=0
    timeout 120 "$ndkping" "$@" >"$scratch/client.out" 2>&1 || status=$?
    awk '{ line[NR] = length($0) > 100 ? substr($0, 1, 97) "..." : $0 }
        END {
            for (i = 1; i <= NR; i++)
                if (NR <= 24 || i <= 4 || i > NR - 8)
                    print line[i]
                else if (i == 5)
                    print "    [" NR - 12 " lines]"
        }' "$scratch/client.out"
    [ "$status" -ne 124 ] || fail "the client did not end within 120 seconds"
    [ "$status" -eq 0 ] || fail "the client ended with status $status"
}

# The server ends by itself after its client, with what it thinks of the data.
join_server() {
    tries=0
    while kill -0 "$server" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -le 150 ] || fail "the server did not end within 15 seconds of its client"
        sleep 0.1
    done
    status=0
    wait "$server" || status=$?
    server=
    [ "$status" -eq 0 ] || fail "the server ended with status $status"
}

echo "== 100 iterations of 64 KiB, verified at both ends"
start_server -s -a "$address" -p 0 -v -V
run_client -c -a "$address" -p "$port" -C 100 -S 65536 -v -V
join_server

echo
echo "== The table"
start_server -s -a "$address" -p 0 -P
run_client -c -a "$address" -p "$port" --table
kill "$server" 2>/dev/null || fail "the server did not survive its client"
wait "$server" 2>/dev/null || true
server=

echo
echo "demo: good"
