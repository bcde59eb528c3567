#!/bin/sh
# SPDX-License-Identifier: MIT
#
# conformance.sh here|two|late|ports|slow ARGUMENT... - the conformance kit against softndk.
#   here   all cases, both ends in one process       two    the server halves in a second process
#   late   the same with server halves that start late: a client half that skips at once ends them
#   ports  few ephemeral ports, the cases that need that
#   slow   short timers, the cases that wait for them
# The arguments go to ndkconform, to both of two. --ipv6 is skipped where ::1 is not.
# SOFTNDK_BUILD_DIR says where the program is, SOFTNDK_KIT_LIMIT how many seconds a case may take
# (default 60).
set -eu

how=$1
shift
arguments=$*
set --
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"
ndkconform=$build/bin/ndkconform
limit=${SOFTNDK_KIT_LIMIT:-60}
arguments="--limit $limit $arguments"

case " $arguments " in
*" --ipv6 "*) has_ipv6_loopback || skip "no address ::1" ;;
esac

is_serving() {
    peer=$(sed -n 's/^ndkconform: serving on //p' "$scratch/kit.out")
    [ -n "$peer" ]
}

case $how in
here)
    # shellcheck disable=SC2086 # words
    "$ndkconform" $arguments
    ;;
ports)
    # 16 of them, others in each run.
    low=$((49152 + $$ % 1000 * 16))
    # shellcheck disable=SC2086
    "$ndkconform" $arguments --options "port_low=$low,port_high=$((low + 15))" 'ASY-54?' 'ASY-55?' 'ASY-56?'
    ;;
slow)
    # shellcheck disable=SC2086
    "$ndkconform" $arguments --slow timers \
        --options connect_ms=1500,establish_ms=1500,disconnect_ms=1500
    ;;
two | late)
    late=
    if [ "$how" = late ]; then
        late="--late 30"
        set -- REQ-045 DATA-002
    fi
    : >"$scratch/kit.out"
    # shellcheck disable=SC2086
    "$ndkconform" --serve $late $arguments >"$scratch/kit.out" 2>"$scratch/kit.err" &
    server=$!
    started="$started $server"
    wait_until 60 is_serving || fail "the serving kit does not serve"
    # shellcheck disable=SC2086
    "$ndkconform" --peer "$peer" $arguments "$@" || fail "cases failed"
    join "$server" 60
    expect_status 0 "the serving kit"
    ;;
*)
    echo "usage: conformance.sh here|two|late|ports|slow ARGUMENT..." >&2
    exit 2
    ;;
esac
