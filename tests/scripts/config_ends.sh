#!/bin/sh
# SPDX-License-Identifier: MIT
#
# config_ends.sh BUILD_DIRECTORY - two processes over one configuration, with addresses that no host
# has: over loopback, also for cases of the conformance kit; with the variables instead of the file; and, as root, over a veth pair between
# two namespaces, with one file for both. What ndkinfo tells of it; what a wrong file is answered.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

left=ndc$$l # namespaces and interfaces; 15 characters at most
right=ndc$$r
spaces=

clean_up() {
    [ -n "$spaces" ] || return 0
    ip netns del "$left" 2>/dev/null || true
    ip netns del "$right" 2>/dev/null || true # takes its end of the pair, and so the pair, along
}

# both ADDRESS [client arguments]: a server on it and a client to it, each over its own process
both() {
    to=$1
    shift
    start_server "$to" -V
    expect_text server.out "listening on " "server $to"
    run_client -V -S 4096 -C 5 "$@"
    expect_status 0 "client to $to"
    join_server
    expect_status 0 "server $to"
    say "$to: $(head -n 1 "$scratch/client.out")"
}

# peer_is PREFIX: what the server was told of its peer
peer_is() {
    grep -q "^$1:[0-9]*: " "$scratch/server.out" || fail "the peer is not $1"
}

# ---- Over loopback -------------------------------------------------------------------------------

third=$(($$ % 250)) # host addresses that nobody else here has
cat >"$scratch/two.ini" <<END
[interface 12]
alias = "Ethernet 2"
address = 10.0.0.1 = 127.77.$third.1
[interface 15]
address = 10.0.0.2 = 127.77.$third.2
address = fd00::2 = 127.77.$third.3
[peer]
10.0.0.9 = 127.77.$third.9
[options]
frmr_pages = 32
END
SOFTNDK_CONFIG=$scratch/two.ini
export SOFTNDK_CONFIG

both 10.0.0.2
peer_is 10.0.0.2 # the way to an address of this host begins there
both 10.0.0.1

"$ndkinfo" --config >"$scratch/config.out"
expect_text config.out 'interface 12 "Ethernet 2" on lo' "ndkinfo --config"
grep -q "address fd00::2 = 127.77.$third.3 *$scratch/two.ini:6" "$scratch/config.out" ||
    fail "ndkinfo --config does not tell the line"
"$ndkinfo" "Ethernet 2" 15 >"$scratch/info.out"
expect_text info.out "InterfaceIndex: 12" "ndkinfo, by alias"
expect_text info.out "Addresses: 10.0.0.2 fd00::2" "ndkinfo, by index"
expect_text info.out "HostAddresses: 127.77.$third.2 127.77.$third.3" "ndkinfo, by index"
expect_text info.out "FRMRPageCount: 32" "ndkinfo, options of the file"

# The kit's cases about connections: nothing about them is otherwise than over the host's own.
for to in 10.0.0.2 fd00::2; do
    status=0
    "$build/bin/ndkconform" --addr "$to" connect ports section13 >"$scratch/kit.out" 2>&1 || status=$?
    expect_status 0 "ndkconform $to"
    say "$to: $(tail -n 1 "$scratch/kit.out")"
done

# ---- The variables -------------------------------------------------------------------------------

unset SOFTNDK_CONFIG
SOFTNDK_INTERFACES="12=10.0.0.1=127.78.$third.1,15=10.0.0.2=127.78.$third.2"
export SOFTNDK_INTERFACES
both 10.0.0.2
unset SOFTNDK_INTERFACES

# ---- A wrong file --------------------------------------------------------------------------------

printf '[interface 12]\naddress = 10.0.0.1\n[interface 12]\nhost = lo\n' >"$scratch/wrong.ini"
for arguments in "" --config 12; do
    status=0
    # shellcheck disable=SC2086 # perhaps none
    SOFTNDK_CONFIG=$scratch/wrong.ini "$ndkinfo" $arguments >"$scratch/wrong.out" \
        2>"$scratch/wrong.err" || status=$?
    expect_status 1 "ndkinfo $arguments, wrong file"
    expect_text wrong.err "wrong.ini:3: interface 12: is given twice (first in $scratch/wrong.ini:1)" \
        "ndkinfo $arguments"
done
say "a wrong file: said"

# ---- Two namespaces ------------------------------------------------------------------------------

[ "$(id -u)" -eq 0 ] && command -v ip >/dev/null 2>&1 ||
    { say "good; the namespaces left out: they need root and ip"; exit 0; }
ip netns add "$left" 2>"$scratch/netns.err" ||
    { say "good; the namespaces left out: $(head -n 1 "$scratch/netns.err")"; exit 0; }
spaces=yes
ip netns add "$right"
ip link add "$left" netns "$left" type veth peer name "$right" netns "$right"
for side in "$left 198.18.0.1/30" "$right 198.18.0.2/30"; do
    # shellcheck disable=SC2086 # two words
    set -- $side
    ip -n "$1" link set lo up
    ip -n "$1" link set "$1" up
    ip -n "$1" addr add "$2" dev "$1"
done
cat >"$scratch/veth.ini" <<END
[interface 12]
address = 10.0.0.1 = 198.18.0.1
address = fd00::1 = 198.18.0.5
[interface 15]
address = 10.0.0.2 = 198.18.0.2
address = fd00::2 = 198.18.0.6
END
ip -n "$left" addr add 198.18.0.5/29 dev "$left"
ip -n "$right" addr add 198.18.0.6/29 dev "$right"
SOFTNDK_CONFIG=$scratch/veth.ini
export SOFTNDK_CONFIG
in_server="ip netns exec $left"
in_client="ip netns exec $right"
both 10.0.0.1
peer_is 10.0.0.2
both fd00::1
peer_is '\[fd00::2\]'
# Each finds its own up.
$in_server "$ndkinfo" >"$scratch/left.out"
expect_text left.out "InterfaceIndex: 12" "ndkinfo, left"
! grep -q "InterfaceIndex: 15" "$scratch/left.out" || fail "left: interface 15 is up"
say "good"
