#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bench_floor.sh BUILD_DIRECTORY - every mode of bench/floor, and of bench/fabric where that is
# built, with a few iterations: both ends agree on what went over, and the line of JSON has what was
# asked for. Nothing here depends on a time.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# begin PROGRAM: a server, its port in $port
begin() {
    : >"$scratch/server.out"
    "$1" -s >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    port=
    wait_until 20 has_port || fail "$1: not listening after 20 s"
    [ -n "$port" ] || fail "$1: ended before it listened"
}

# measure PROGRAM ITERATIONS FIELD ARGUMENTS...: the client prints so many iterations, and the field
measure() {
    program=$1 count=$2 field=$3
    shift 3
    begin "$program"
    status=0
    timeout "$step_s" "$program" -c 127.0.0.1 -p "$port" --warm-up 0 --iters "$count" "$@" \
        >"$scratch/client.out" 2>"$scratch/client.err" || status=$?
    expect_status 0 "$(basename "$program") $*"
    join_server
    expect_status 0 "server of $*"
    python3 - "$scratch/client.out" "$count" "$field" <<'END' || fail "$*: the line of JSON"
import json, sys
line = json.loads(open(sys.argv[1]).read())
assert line["iters"] == int(sys.argv[2]), f"{line['iters']} iterations (need {sys.argv[2]})"
assert line[sys.argv[3]] > 0, f"{sys.argv[3]} is {line[sys.argv[3]]}"
END
    runs=$((runs + 1))
}

# refused MESSAGE ARGUMENTS...: the client says what is wrong
refused() {
    message=$1
    shift
    status=0
    "$floor" -c 127.0.0.1 -p 9 "$@" >"$scratch/client.out" 2>"$scratch/client.err" || status=$?
    expect_status 1 "floor $*"
    expect_text client.err "$message" "floor $*"
}

floor=$build/bin/bench/floor
fabric=$build/bin/bench/fabric
runs=0
[ -x "$floor" ] || fail "no program $floor"

for wait in block spin; do
    # Ends that spin on a busy processor take turns by the scheduler's clock.
    measure "$floor" 10 t_avg_us --wait $wait pingpong
    measure "$floor" 10 t_avg_us --wait $wait event
    measure "$floor" 10 t_avg_us --wait $wait --sockets 5 robin
    measure "$floor" 64 rate_Mps --wait $wait --gather 32 --crc on send
    measure "$floor" 4 MBps --wait $wait --size 1048576 --window 2 --crc on read
done
measure "$floor" 5 t_avg_us --size 262144 pingpong
measure "$floor" 5 t_avg_us --size 262144 event
measure "$floor" 100 rate_Mps --size 88 send
measure "$floor" 1000 rate_Mps --gather 50 --batch 4096 send
measure "$floor" 100 MBps --size 4096 --gather 20 --crc on write
measure "$floor" 16 MBps --size 65536 --gather 8 --buffer 65536 write
measure "$floor" 5 MBps --size 1048576 write
measure "$floor" 5 MBps --size 1048576 --fpdu 1408 --crc on write
measure "$floor" 5 MBps --size 1048576 raw
measure "$floor" 500 rate_Mps --window 32 --crc on read
measure "$floor" 200 rate_Mps --size 4096 --window 300 read
measure "$floor" 50 conns_per_s connect
measure "$floor" 200 conns_per_s --sockets 64 connect
measure "$floor" 50 conns_per_s mpa
measure "$floor" 5 conns_per_s --wait spin mpa
measure "$floor" 200 conns_per_s --sockets 64 mpa
say "floor: $runs measurements"

refused "--size 6: a multiple of 4" --size 6 pingpong
refused "--wait sleep: spin or block is needed" --wait sleep pingpong
refused "no mode 'pong'" pong
refused "connect: Connection refused" pingpong

runs=0
if [ -x "$fabric" ]; then
    for wait in spin block; do
        measure "$fabric" 5 t_avg_us --wait $wait latency
        measure "$fabric" 50 rate_Mps --wait $wait --window 16 send
        measure "$fabric" 5 MBps --wait $wait --window 2 --size 65536 write
        measure "$fabric" 5 MBps --wait $wait --window 2 --size 65536 read
    done
    say "fabric: $runs measurements"
else
    say "fabric: left out, it is not built (libfabric-dev)"
fi
say "good"
