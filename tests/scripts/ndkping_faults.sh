#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkping_faults.sh BUILD_DIRECTORY - ndkping when its provider fails: the nth allocation of one end,
# then the first use of each call, inline and through the callback. Both ends must end by themselves
# or when asked, with exit status 0 or 1: a crash, a hang and (in a sanitizer build) a leak are none
# of these.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# expect_end WHAT: $status is that of a program that ended in order.
expect_end() {
    case $status in
    0 | 1) ;;
    *) fail "$1: exit status $status (need 0 or 1)" ;;
    esac
}

# start_failing_server RULES: $port is empty when it ended before it listened.
start_failing_server() {
    : >"$scratch/server.out"
    address=127.0.0.1
    SOFTNDK_FAIL=$1 "$ndkping" -s -a "$address" -p 0 >"$scratch/server.out" \
        2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    port=
    wait_until 20 has_port || fail "server, $1: neither listens nor ends"
}

# pair SERVER_RULES CLIENT_RULES WHAT: sets $server_status and $client_status ("-": did not run)
pair() {
    client_status=-
    start_failing_server "$1"
    if [ -n "$port" ]; then
        SOFTNDK_FAIL=$2
        export SOFTNDK_FAIL
        run_client -V -S 5000 -C 3
        unset SOFTNDK_FAIL
        expect_end "client, $3"
        client_status=$status
        # A server that never saw its client waits for another one.
        [ "$status" -eq 0 ] || kill -TERM "$server" 2>/dev/null || true
    fi
    join_server
    expect_end "server, $3"
    server_status=$status
}

# both RULES: once at each end. One of the two must notice.
both() {
    pair "" "$1" "client fails: $1"
    [ "$client_status" = 1 ] || fail "client with $1: exit status $client_status (need 1)"
    pair "$1" "" "server fails: $1"
    [ "$client_status" != 0 ] || [ "$server_status" = 1 ] ||
        fail "server with $1: nobody noticed"
}

memory() {
    n=1
    while [ "$n" -le 24 ]; do
        pair "" "memory:$n" "client, memory:$n"
        pair "memory:$n" "" "server, memory:$n"
        n=$((n + 1))
    done
    say "memory: good"
}

calls() {
    for call in NdkCreateCq NdkCreatePd NdkCreateQp NdkCreateMr NdkRegisterMr NdkReceive NdkSend \
        NdkGetConnectionData NdkDisconnect; do
        both "$call:1:STATUS_INSUFFICIENT_RESOURCES"
    done
    for call in NdkCreateConnector NdkConnect NdkCompleteConnectEx; do
        pair "" "$call:1:STATUS_INSUFFICIENT_RESOURCES" "client, $call"
        [ "$client_status" = 1 ] || fail "client with $call: exit status $client_status (need 1)"
    done
    for call in NdkCreateListener NdkListen NdkAcceptEx NdkRead NdkWrite; do
        pair "$call:1:STATUS_INSUFFICIENT_RESOURCES" "" "server, $call"
        [ "$server_status" = 1 ] || fail "server with $call: exit status $server_status (need 1)"
    done
    say "calls, SOFTNDK_PEND=${SOFTNDK_PEND:-never}: good"
}

memory
calls
SOFTNDK_PEND=always
export SOFTNDK_PEND
calls
say "good"
