#!/bin/sh
# SPDX-License-Identifier: MIT
#
# conformance.sh here|two ARGUMENT... - the conformance kit against softndk, both ends in one process
# (here) or the server halves in a second one (two). The arguments go to both ndkconform; --ipv6 is
# skipped where ::1 is not. SOFTNDK_BUILD_DIR says where the program is, SOFTNDK_KIT_LIMIT how many
# seconds a case may take (default 60).
set -eu

how=$1
shift
arguments=$*
set --
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"
ndkconform=$build/bin/ndkconform
limit=${SOFTNDK_KIT_LIMIT:-60}
# Less patience than the default 10 s with a peer that never answers a disconnect: a case waits for it.
arguments="--limit $limit --options disconnect_ms=1500 $arguments"

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
two)
    : >"$scratch/kit.out"
    # shellcheck disable=SC2086
    "$ndkconform" --serve $arguments >"$scratch/kit.out" 2>"$scratch/kit.err" &
    server=$!
    started="$started $server"
    wait_until 60 is_serving || fail "the serving kit does not serve"
    # shellcheck disable=SC2086
    "$ndkconform" --peer "$peer" $arguments || fail "cases failed"
    join "$server" 60
    expect_status 0 "the serving kit"
    ;;
*)
    echo "usage: conformance.sh here|two ARGUMENT..." >&2
    exit 2
    ;;
esac
