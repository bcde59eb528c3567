#!/bin/sh
# SPDX-License-Identifier: MIT
#
# example_drivers.sh - each driver of examples/drivers, as it was built, under softndk-run: in every way
# in which calls may complete, with adapters that promise little, and, those that can, as a server and
# clients in processes of their own. Each must say that it is done, and leave nothing.
# SOFTNDK_EXAMPLE_SEEDS: more seeds of --pend random.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}
run=$build/bin/softndk-run
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-examples.XXXXXX")
server=
cleanup() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
unset SOFTNDK_PEND SOFTNDK_OPTIONS SOFTNDK_PROFILE || true

fail() {
    echo "example_drivers: FAILED: $1" >&2
    tail -n 25 "$2" >&2
    exit 1
}

# ended WHAT NAME STATUS FILE: whether the run of the driver NAME, whose output is in FILE, was good.
ended() {
    if [ "$3" -ne 0 ] || ! grep -q "^$2: done" "$4" || ! grep -q '^softndk-run: clean$' "$4"; then
        fail "$1: exit status $3 (need 0, done, clean)" "$4"
    fi
    echo "example_drivers: $1: good"
    ran=$((ran + 1))
}

# try WHAT NAME OPTION... -- KEY=VALUE...
try() {
    what=$1 name=$2 status=0
    shift 2
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # a list of options without blanks
    "$run" --timeout 100 --idle 0.2 $options "$build/bin/examples/$name.so" "$@" \
        >"$scratch/said" 2>&1 || status=$?
    ended "$what" "$name" "$status" "$scratch/said"
}

ran=0
for file in "$source"/examples/drivers/*; do
    name=$(basename "$file" .c)
    for mode in never always early random:7 ${SOFTNDK_EXAMPLE_SEEDS:-}; do
        try "$name, $mode" "$name" --pend "$mode" --
    done
    try "$name, strict" "$name" --profile strict --
done
[ "$ran" -gt 0 ] || fail "no examples" /dev/null
try "server, one connection" server -- Connections=1 Bursts=3
try "rw, ndkpi 1.2" rw --options ndkpi=1.2 --

# A server that runs until it is told to end, and two clients, one after the other.
for name in rw server; do
    "$run" --idle never --timeout 200 "$build/bin/examples/$name.so" Role=server \
        >"$scratch/server" 2>&1 &
    server=$!
    tries=0 port=
    while [ -z "$port" ]; do
        sleep 0.1
        port=$(sed -n "s/^$name: listening on port \\([0-9]*\\)\$/\\1/p" "$scratch/server")
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "$name: the server does not listen" "$scratch/server"
    done
    for client in 1 2; do
        try "$name, client $client of a server elsewhere" $name -- Role=client "Port=$port"
    done
    kill -INT "$server"
    status=0
    wait "$server" || status=$?
    server=
    ended "$name, the server elsewhere" $name "$status" "$scratch/server"
done
