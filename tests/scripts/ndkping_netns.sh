#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkping_netns.sh BUILD_DIRECTORY - two ends in two network namespaces, joined by a veth pair with
# an MTU of 1500: a thousand verified iterations of 1 B, 4 KiB and 1 MiB over IPv4 and IPv6, some with an
# MTU of 1280 and of 9000, then 20 of each size under capture, judged by tshark (W-121).
#
# The judge. Only the iwarp_* fields count: payload may reach heuristic dissectors, and rpcordma would
# take some of it. Our ports are chance, and may be ones that tshark knows for another protocol: MPA,
# which it knows by the contents, comes first. Every TCP segment with payload must belong to an MPA frame, tshark must find
# nothing malformed, and every CRC must be good. A capture that dropped packets proves nothing and
# fails the test.
#
# A sanitizer's build does fewer iterations and no capture: the wire is the same, and it is slow.
#
# Needs root, ip and namespaces; the captured part needs tshark and dumpcap. Without them it is
# skipped (77), with the reason.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

left=ndk$$l # namespaces and interfaces; 15 characters at most
right=ndk$$r
sizes="1 4096 1048576"
many=1000
[ -z "${SOFTNDK_SANITIZE:-}" ] || many=30
addresses="198.18.0.1 fd00:7174::1"
dumper=
step_s=300

clean_up() {
    ip netns del "$left" 2>/dev/null || true
    ip netns del "$right" 2>/dev/null || true # takes its end of the pair, and so the pair, along
}

have() { command -v "$1" >/dev/null 2>&1; }

[ "$(id -u)" -eq 0 ] || skip "needs root, to make network namespaces"
have ip || skip "needs ip (package iproute2)"
ip netns add "$left" 2>"$scratch/netns.err" ||
    skip "cannot make a network namespace: $(head -n 1 "$scratch/netns.err")"

# ---- The network ---------------------------------------------------------------------------------

ip netns add "$right"
ip link add "$left" netns "$left" type veth peer name "$right" netns "$right"

# side NAME IPV4 IPV6
side() {
    ip -n "$1" link set lo up
    ip -n "$1" link set "$1" mtu 1500 up
    ip -n "$1" addr add "$2" dev "$1"
    ip -n "$1" addr add "$3" dev "$1" nodad 2>"$scratch/ipv6.err" || addresses=198.18.0.1
}
side "$left" 198.18.0.1/30 fd00:7174::1/64
side "$right" 198.18.0.2/30 fd00:7174::2/64
[ "$addresses" != 198.18.0.1 ] || say "IPv6 left out: $(head -n 1 "$scratch/ipv6.err")"
in_server="ip netns exec $left"
in_client="ip netns exec $right"

# run ADDRESS SIZE COUNT
run() {
    start_server "$1" -V
    run_client -V -S "$2" -C "$3"
    expect_status 0 "client $1, $2 octets"
    expect_text client.out "$3 iterations of $2 octets, verified at both ends" "client $1"
    join_server
    expect_status 0 "server $1, $2 octets"
    say "$1: $(head -n 1 "$scratch/client.out")"
}

for to in $addresses; do
    for size in $sizes; do
        run "$to" "$size" "$many"
    done
done

# Segments of other sizes: FPDUs are cut by what TCP tells.
for mtu in 1280 9000; do
    ip -n "$left" link set "$left" mtu "$mtu"
    ip -n "$right" link set "$right" mtu "$mtu"
    say "MTU $mtu"
    for to in $addresses; do
        run "$to" 70000 20
    done
done
ip -n "$left" link set "$left" mtu 1500
ip -n "$right" link set "$right" mtu 1500

# ---- The same, looked at -------------------------------------------------------------------------

if [ -n "${SOFTNDK_SANITIZE:-}" ]; then
    say "good"
    exit 0
fi
have tshark || skip "the long runs are good; their captures need tshark"
have dumpcap || skip "the long runs are good; their captures need dumpcap (wireshark-common)"

is_capturing() { grep -q '^File:' "$scratch/dumpcap.err" || has_ended "$dumper"; }

# Room for everything, so that nothing is dropped: 256 MiB of kernel buffer.
start_capture() {
    : >"$scratch/dumpcap.err"
    ip netns exec "$left" dumpcap -q -i "$left" -B 256 -f tcp -w "$scratch/$1.pcapng" \
        2>"$scratch/dumpcap.err" &
    dumper=$!
    started="$started $dumper"
    wait_until 30 is_capturing || fail "dumpcap does not begin"
    ! has_ended "$dumper" || fail "dumpcap ended at once"
}

# Octets that dumpcap has written; still when it has caught up.
file_size() { wc -c <"$scratch/$1.pcapng"; }

is_still() {
    before=$(file_size "$1")
    sleep 0.5
    [ "$(file_size "$1")" -eq "$before" ]
}

stop_capture() {
    wait_until 60 is_still "$1" || fail "dumpcap does not come to rest"
    kill -INT "$dumper"
    join "$dumper" 60
    expect_status 0 dumpcap
    # "Packets received/dropped on interface 'x': 123/0 (pcap:0/dumpcap:0/...) (100.0%)"
    counts=$(sed -n "s|^Packets received/dropped on interface .*: \([0-9]*\)/\([0-9]*\) .*|\1 \2|p" \
        "$scratch/dumpcap.err")
    [ -n "$counts" ] || fail "dumpcap does not tell what it dropped"
    [ "${counts#* }" -eq 0 ] || fail "capture $1: ${counts#* } packets dropped"
}

# shark NAME ARGUMENTS...
shark() {
    name=$1
    shift
    tshark -r "$scratch/$name.pcapng" --disable-protocol rpcordma -o tcp.try_heuristic_first:TRUE "$@" \
        2>"$scratch/tshark.err" ||
        fail "tshark $*: exit status $?"
}

# none NAME FILTER WHAT
none() {
    shark "$1" -Y "$2" >"$scratch/none.out"
    [ ! -s "$scratch/none.out" ] || fail "$1: $(wc -l <"$scratch/none.out") frames: $3"
}

# lines PATTERN: of the dissection
lines() { grep -cE "$1" "$scratch/dissected.txt" || true; }

# exactly NUMBER PATTERN WHAT
exactly() {
    [ "$(lines "$2")" -eq "$1" ] || fail "$name: $(lines "$2") $3 (need $1)"
}

# A busy host makes TCP send again or out of order; what tshark reassembles then is no evidence.
is_disordered() {
    shark "$1" -Y "tcp.analysis.retransmission || tcp.analysis.out_of_order || \
        tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment" >"$scratch/disorder.out"
    [ -s "$scratch/disorder.out" ] || return 1
    say "$1: $(wc -l <"$scratch/disorder.out") segments repeated or out of order: once more"
}

# judge NAME COUNT
judge() {
    name=$1
    shark "$name" -V -O iwarp_mpa,iwarp_ddp_rdmap >"$scratch/dissected.txt"
    exactly 1 '^ *Request frame header' "MPA Requests"
    exactly 1 '^ *Reply frame header' "MPA Replies"

    # Segments that tshark puts together stand in the frame of the last one.
    again="tcp.analysis.retransmission || tcp.analysis.keep_alive || tcp.analysis.zero_window_probe"
    none "$name" "tcp.len > 0 && !iwarp_mpa && !tcp.reassembled_in && !($again)" \
        "payload that is no MPA frame"
    none "$name" "_ws.malformed && (iwarp_mpa || iwarp_ddp || iwarp_rdma)" "malformed"

    fpdus=$(lines '^ *ULPDU length: ')
    [ "$fpdus" -gt 0 ] || fail "$name: no FPDU"
    exactly 0 'Bad CRC32' "bad CRCs"
    exactly "$fpdus" 'CRC check: 0x[0-9a-f]+ \(Good CRC32\)' "good CRCs"
    exactly "$fpdus" '= OpCode: ' "RDMAP headers"

    # Four Sends an iteration, one Read, one Write; the connection may begin with one Read more.
    exactly $((4 * $2)) '= OpCode: Send \(' Sends
    reads=$(lines '= OpCode: Read Request')
    [ "$reads" -eq "$2" ] || [ "$reads" -eq $(($2 + 1)) ] ||
        fail "$name: $reads Read Requests (need $2 or one more)"
    [ "$(lines '= OpCode: Write')" -ge "$2" ] || fail "$name: fewer than $2 Writes"
    exactly 0 '= OpCode: Terminate' Terminates
    say "$name: $fpdus FPDUs, all with a good CRC, nothing dropped"
}

for to in $addresses; do
    case $to in
    *:*) family=ipv6 ;;
    *) family=ipv4 ;;
    esac
    for size in $sizes; do
        captures=0
        while :; do
            start_capture "$family-$size"
            run "$to" "$size" 20
            stop_capture "$family-$size"
            is_disordered "$family-$size" || break
            captures=$((captures + 1))
            [ "$captures" -lt 8 ] || fail "$family-$size: TCP repeats or reorders in every run"
        done
        judge "$family-$size" 20
        rm "$scratch/$family-$size.pcapng"
    done
done
say "good"
