# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# lib.sh - what the scripts that test programs share. Sourced, with the build directory in $1 or in
# SOFTNDK_BUILD_DIR. Gives a scratch directory, a server on a port of its own, and an end that stops
# only what was started here.
#
#   in_server, in_client   a prefix for each side's command ("ip netns exec NAME"), or empty
#   server                 process of the server that runs, or empty
#   address, port          where it listens

build=${1:-${SOFTNDK_BUILD_DIR:-}}
self=$(basename "$0" .sh)
if [ -z "$build" ] || [ ! -x "$build/bin/ndkping" ]; then
    echo "$self: usage: $0 BUILD_DIRECTORY (no program ${build:-.}/bin/ndkping)" >&2
    exit 2
fi
ndkping=$build/bin/ndkping
# shellcheck disable=SC2034 # for the scripts
ndkinfo=$build/bin/ndkinfo
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-$self.XXXXXX")
in_server=
in_client=
server=
started= # processes to end if they are still there
step_s=120 # one client at most; sanitizers are slow

clean_up() { :; } # a script may have more to do

finish() {
    for process in $started; do
        kill -KILL "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    clean_up
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "$self: $*"; }

skip() {
    say "skipped: $*"
    exit 77
}

fail() {
    say "FAILED: $*" >&2
    for file in "$scratch"/*.out "$scratch"/*.err; do
        if [ -s "$file" ]; then
            echo "--- the last of $(basename "$file")" >&2
            tail -n 12 "$file" | cut -c 1-300 >&2
        fi
    done
    exit 1
}

forget() {
    rest=
    for process in $started; do
        [ "$process" = "$1" ] || rest="$rest $process"
    done
    started=$rest
}

# wait_until SECONDS COMMAND...: polls; a condition with a bound, never a fixed time.
wait_until() {
    turns_left=$(($1 * 20))
    shift
    while ! "$@"; do
        turns_left=$((turns_left - 1))
        [ "$turns_left" -gt 0 ] || return 1
        sleep 0.05
    done
}

has_port() {
    port=$(sed -n 's/^listening on .*:\([0-9][0-9]*\)$/\1/p' "$scratch/server.out" | head -n 1)
    [ -n "$port" ] || ! kill -0 "$server" 2>/dev/null
}

# start_server ADDRESS [arguments]: on a port that the system chooses. The pid is that of ndkping
# itself, also behind a prefix, which executes it.
start_server() {
    address=$1
    shift
    # The background process empties its files only when it runs, perhaps after our first look.
    : >"$scratch/server.out"
    # shellcheck disable=SC2086 # a prefix is words
    $in_server "$ndkping" -s -a "$address" -p 0 "$@" \
        >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    port=
    wait_until 20 has_port || fail "server $address $*: not listening after 20 s"
    [ -n "$port" ] || fail "server $address $*: ended before it listened"
}

has_ended() { ! kill -0 "$1" 2>/dev/null; }

# join PROCESS SECONDS: its exit status in $status; it must end by itself in that time.
join() {
    wait_until "$2" has_ended "$1" || fail "process $1 has not ended after $2 s"
    status=0
    wait "$1" || status=$?
    forget "$1"
}

join_server() {
    join "$server" 60
    server=
}

# run_client [arguments]: its exit status in $status, its output in client.out and client.err.
run_client() {
    status=0
    # shellcheck disable=SC2086
    $in_client timeout "$step_s" "$ndkping" -c -a "$address" -p "$port" "$@" \
        >"$scratch/client.out" 2>"$scratch/client.err" || status=$?
    [ "$status" -ne 124 ] || fail "client $address $*: not done after $step_s s"
}

expect_status() {
    [ "$status" -eq "$1" ] || fail "$2: exit status $status (need $1)"
}

# expect_text FILE TEXT WHAT
expect_text() {
    grep -qF -- "$2" "$scratch/$1" || fail "$3: $1 does not say '$2'"
}

has_ipv6_loopback() {
    grep -q '^00000000000000000000000000000001 ' /proc/net/if_inet6 2>/dev/null
}
