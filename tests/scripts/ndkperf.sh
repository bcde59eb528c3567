#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkperf.sh BUILD_DIRECTORY - ndkperf over loopback, as two processes and as one: every operation in
# every mode with few iterations, verified where that can be, in each way to wait and to progress;
# what is printed; a server that serves one client after another, and clients and servers that go;
# what wrong arguments are answered. No figure is judged.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

ndkperf=$build/bin/ndkperf
[ -x "$ndkperf" ] || fail "no program $ndkperf"
python=$(command -v python3) || python=

# serve [arguments]: a server on a port of its own
serve() {
    : >"$scratch/server.out"
    "$ndkperf" -s 127.0.0.1 -p 0 "$@" >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    port=
    wait_until 20 has_port || fail "server $*: not listening after 20 s"
    [ -n "$port" ] || fail "server $*: ended before it listened"
}

# client [arguments]: its exit status in $status
client() {
    status=0
    timeout "$step_s" "$ndkperf" -c 127.0.0.1 -p "$port" "$@" >"$scratch/client.out" \
        2>"$scratch/client.err" || status=$?
    [ "$status" -ne 124 ] || fail "client $*: not done after $step_s s"
}

# self [arguments]
self() {
    status=0
    timeout "$step_s" "$ndkperf" --self "$@" >"$scratch/client.out" 2>"$scratch/client.err" ||
        status=$?
    [ "$status" -ne 124 ] || fail "--self $*: not done after $step_s s"
}

# The rows of client.out are JSON, a line each, and hold these.
# has_json ROWS NAME...
has_json() {
    [ -n "$python" ] || return 0
    "$python" - "$scratch/client.out" "$@" <<'END' || fail "not the JSON that is promised: $*"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == int(sys.argv[2]), len(rows)
common = ["op", "mode", "iters", "qps", "depth", "defer", "crc", "fpdu", "completion", "progress"]
for row in rows:
    for name in common + sys.argv[3:]:
        assert name in row, name
    for name in sys.argv[3:]:
        assert row[name] > 0 or name == "t_stdev_us", (name, row[name])
    if "t_min_us" in row:
        assert row["t_min_us"] <= row["t_typical_us"] <= row["t_p99_us"] <= row["t_p999_us"]
        assert row["t_p999_us"] <= row["t_max_us"] and row["t_min_us"] <= row["t_avg_us"]
END
}

times="t_min_us t_typical_us t_avg_us t_stdev_us t_p99_us t_p999_us t_max_us"
rates="bw_peak_MBps bw_avg_MBps rate_Mps"

# row NAMES END ARGUMENTS...: a run by `client` or `self` that prints one object with these names
row() {
    names=$1 end=$2
    shift 2
    "$end" --json "$@"
    expect_status 0 "$end $*"
    # shellcheck disable=SC2086 # names are words
    has_json 1 size $names
}

# ---- Good runs -----------------------------------------------------------------------------------

every_one() {
    row "$times" client --mode lat -n 60 --verify
    for octets in 1 8 64 300 65536; do
        row "$times" client --mode lat -n 60 --verify --op write -S $octets
    done
    row "$times" client --mode lat -n 60 --verify --op read -S 70000
    row "$times" client --mode lat -n 60 --verify --round-robin -q 5 -S 1
    row "$times" client --mode lat -n 30 --op fastreg
    row "$rates" client --mode bw -n 60 --verify -t 8
    row "$rates" client --mode bw -n 60 --verify -t 8 --op write -b
    row "$rates" client --mode bw -n 60 --verify -t 8 --op read -q 3
    row "$rates" client --mode rate -n 500 --verify --defer 8 -Q 4 -t 16 --wait event -b
    row "$rates" client --mode rate -n 500 --op write --defer 8 -T 2 -q 3 --inline 64
    row "$rates" client --mode rate -n 100 --op fastreg -q 2 -t 4
    row "$rates" client --mode rate -n 100 --op send-inv --wait event
    row "$rates" client --mode rate -n 100 --op fastreg --no-reg
    client --json --mode conn -n 20 -q 4
    expect_status 0 "--mode conn"
    # shellcheck disable=SC2086
    has_json 1 conns_per_s $times
    say "every operation: good"
}

both_in_one() {
    row "$times" self --mode lat -n 60 --verify
    row "$rates" self --mode bw -n 60 --verify -t 8 --op write -b --wait event
    row "$rates" self --mode rate -n 100 --op fastreg
    self --json --mode conn -n 10
    expect_status 0 "--self --mode conn"
    say "both ends in one process: good"
}

# The conditions that are told are those of the adapter, whoever said them.
# told SETTING TEXT ARGUMENTS...
told() {
    setting=$1 text=$2
    shift 2
    status=0
    env "$setting" timeout 20 "$ndkperf" --self -n 10 "$@" >"$scratch/client.out" \
        2>"$scratch/client.err" || status=$?
    expect_status 0 "$setting --self $*"
    expect_text client.out "$text" "$setting --self $*"
}

conditions() {
    told A=b "completion local, CRC on, FPDUs up to "
    told A=b "octets, progress engine"
    told SOFTNDK_OPTIONS=crc=0,completion=acked,progress=inline,fpdu_max=700 \
        "completion acked, CRC off, FPDUs up to 700 octets, progress inline"
    told SOFTNDK_OPTIONS=crc=0 '"crc": "off"' --json
    told SOFTNDK_OPTIONS=crc=0 "CRC on" --crc on
    told A=b "completion placed, CRC off" -o completion=placed,crc=0
    told A=b '"fpdu": 700' --json -o fpdu_max=700
    told A=b "progress adaptive" -o progress=adaptive
    told A=b "FPDUs by the segment size" --mode conn
    told A=b '"fpdu": 1454, ' --json --mode lat -o profile=iwarp-rnic
    for mode in lat conn; do # the container of private data is read as this one insists
        told A=b "profile=cx3" --mode $mode -o profile=cx3
    done
    say "conditions: good"
}

# Few iterations, fewer than are in flight: what is told is what was measured.
few() {
    row "$rates" self -n 10
    row "$rates" self -n 10 --mode rate -b
    row "$rates" self -n 10 --warmup 2000 -S 64
    row "$rates" self -n 10 -q 100 -S 64
    row "$rates" self -n 100 -Q 2000 --op read -S 64
    row "$rates" self -n 33 --warmup 7 -q 3 -Q 64 --verify --mode rate
    row "$rates" self -n 40 -q 3 --op write --verify -Q 17 -b --mode rate --wait event
    row "$rates" self -n 3 -T 4 --mode rate
    row "$rates" self -n 10 --mode rate --op fastreg
    self --json --mode conn -n 3 -q 20 --warmup 50
    expect_status 0 "--mode conn -n 3"
    # shellcheck disable=SC2086
    has_json 1 conns_per_s $times
    expect_text client.out '"iters": 3,' "--mode conn -n 3"
    say "few iterations: good"
}

manners() {
    for progress in inline engine adaptive; do
        for wait in spin event; do
            row "$times" client --mode lat -n 40 --verify --progress $progress --wait $wait
            row "$rates" client --mode rate -n 300 --verify -t 16 --progress $progress --wait $wait
        done
    done
    for completion in placed acked; do
        row "$rates" client --mode bw -n 30 -t 4 --op write --verify --completion $completion
    done
    row "$rates" client --mode bw -n 30 -t 4 --verify --crc off --fpdu 1422
    row "$rates" client --mode bw -D 1 -t 4 -S 4K
    say "ways to wait and to progress: good"
}

# The server's adapters have a CRC, so there is one.
agreed() {
    export SOFTNDK_OPTIONS=crc=0
    client --mode lat -n 10
    unset SOFTNDK_OPTIONS
    expect_status 0 "a client without CRC"
    expect_text client.out "CRC on" "a client without CRC, a server with one"
    say "what both ends agree on: good"
}

printed() {
    client --all --mode bw --op write -n 2 --warmup 0 -t 2 --json --plot "$scratch/curve.svg"
    expect_status 0 "--all"
    # shellcheck disable=SC2086
    has_json 23 size $rates
    client --mode lat -n 50 --plot "$scratch/histogram.svg"
    expect_status 0 "the table"
    expect_text client.out "CRC on" "the table"
    expect_text client.out "#iterations" "the table"
    grep -qE '^ +64 +50( +[0-9.]+){7}$' "$scratch/client.out" || fail "the table has no row"
    client --mode rate -n 50 --plot "$scratch/slices.svg"
    expect_status 0 "a drawing of a rate"
    client --mode conn -n 20 --plot "$scratch/connects.svg"
    expect_status 0 "a drawing of connects"
    for name in curve histogram slices connects; do
        [ -z "$python" ] || "$python" -c 'import sys, xml.dom.minidom as d
root = d.parse(sys.argv[1]).documentElement
assert root.tagName == "svg"
assert root.getElementsByTagName("rect").length > 0' "$scratch/$name.svg" ||
            fail "$name.svg: not well-formed, or no drawing"
    done
    client --mode lat -n 5 --plot "$scratch/none/x.svg"
    expect_status 1 "a drawing that cannot be written"
    expect_text client.err "none/x.svg" "a drawing that cannot be written"
    [ ! -s "$scratch/client.out" ] || fail "a drawing that cannot be written: told after the run"
    client --mode lat -n 5 --plot "$scratch/unmade.svg" -I 1.2.3.4
    [ ! -e "$scratch/unmade.svg" ] || fail "a drawing of a run that never was"
    say "what is printed: good"
}

# ---- Ends and refusals ---------------------------------------------------------------------------

# The library's own sentence, of either end.
refused() {
    client --mode lat -n 5 -o ndkpi=1.1
    expect_status 1 "NDKPI 1.1"
    expect_text client.err "1.2" "NDKPI 1.1"
}

# A client that is killed leaves the server fit for the next one.
client_killed() {
    "$ndkperf" -c 127.0.0.1 -p "$port" --mode rate -D 60 >"$scratch/endless.out" 2>&1 &
    endless=$!
    started="$started $endless"
    wait_until 20 grep -q '#iterations' "$scratch/endless.out" || fail "the client does not begin"
    kill -KILL "$endless"
    wait "$endless" 2>/dev/null || true
    forget "$endless"
    row "$times" client --mode lat -n 10
    say "a client that was killed: good"
}

server_killed() {
    "$ndkperf" -c 127.0.0.1 -p "$port" --mode rate -D 60 >"$scratch/endless.out" 2>&1 &
    endless=$!
    started="$started $endless"
    wait_until 20 grep -q '#iterations' "$scratch/endless.out" || fail "the client does not begin"
    kill -KILL "$server"
    wait "$server" 2>/dev/null || true
    forget "$server"
    server=
    join "$endless" 60
    expect_status 1 "client whose server was killed"
    client --mode lat -n 5
    expect_status 1 "client without a server"
    expect_text client.err STATUS_CONNECTION_REFUSED "client without a server"
    say "a server that was killed: good"
}

once() {
    serve --once
    row "$times" client --mode lat -n 10
    join "$server" 60
    server=
    expect_status 0 "a server that ends after its first client"
}

# Has the process something harmless in the place of its standard files?
files_filled() {
    for file in 0 1 2; do
        [ "$(readlink "/proc/$1/fd/$file")" = /dev/null ] || return 1
    done
}

# Without them no connection is taken for one of them.
no_files() {
    "$ndkperf" -s 127.0.0.1 -p 0 <&- >&- 2>&- &
    server=$!
    started="$started $server"
    wait_until 20 files_filled "$server" || fail "a server without files: takes others for them"
    kill -TERM "$server"
    join_server
    status=0
    timeout 20 "$ndkperf" --self -n 10 <&- >&- 2>&- || status=$?
    expect_status 1 "--self without stdout"
    say "without files: good"
}

# What is no ndkperf does not count, and a client whose run fails does.
once_more() {
    serve --once
    timeout 20 "$ndkping" -c -a 127.0.0.1 -p "$port" >"$scratch/ping.out" 2>&1 &&
        fail "ndkping to ndkperf: not refused"
    row "$times" client --mode lat -n 10
    join_server
    expect_status 0 "a server that a stranger came to first"
    serve --once
    client --mode lat -n 5 -o ndkpi=1.1
    expect_status 1 "NDKPI 1.1"
    join_server
    expect_status 1 "a server whose only client had a run that failed"
    say "servers that end after one client: good"
}

# Is there a connection to 127.0.0.1:PORT?
connected_to() {
    grep -qi "0100007F:$(printf %04X "$1") 01" /proc/net/tcp
}

# failing SECONDS ENVIRONMENT ARGUMENTS...: --self ends by itself with exit status 1 and a sentence
failing() {
    least=$1 setting=$2
    shift 2
    status=0
    env "$setting" timeout "$least" "$ndkperf" --self "$@" >"$scratch/client.out" \
        2>"$scratch/client.err" || status=$?
    expect_status 1 "$setting --self $* (124: not done after $least s)"
    [ -s "$scratch/client.err" ] || fail "$setting --self $*: no sentence"
}

# Both ends in one process end at once, wherever the client stops.
self_fails() {
    failing 8 A=b -I 1.2.3.4
    failing 8 A=b -I ::1
    for call in NdkConnect:1 NdkCreateCq:1 NdkCreateCq:2 NdkCreatePd:1 NdkAcceptEx:1 \
        NdkCreateQp:2; do
        failing 8 SOFTNDK_FAIL=$call:STATUS_IO_TIMEOUT -n 5
    done
    failing 8 SOFTNDK_OPTIONS=max_caller_data=0 -n 5
    say "both ends in one process, failing: good"
}

# Ends that fail while data connections are up, or are stopped while they come, do so at once.
fails_between() {
    for call in NdkConnect:3 NdkCompleteConnectEx:3 NdkCreateConnector:3 NdkAcceptEx:2 \
        NdkAcceptEx:3; do
        failing 8 SOFTNDK_FAIL=$call:STATUS_IO_TIMEOUT -n 5 -q 2
    done
    [ -n "$python" ] || return 0
    : >"$scratch/server.out"
    "$python" -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
print("listening on 127.0.0.1:%d" % s.getsockname()[1], flush=True)
time.sleep(60)' >"$scratch/server.out" 2>&1 &
    server=$!
    started="$started $server"
    wait_until 20 has_port || fail "no silent listener"
    "$ndkperf" -c 127.0.0.1 -p "$port" >"$scratch/endless.out" 2>"$scratch/endless.err" &
    endless=$!
    started="$started $endless"
    wait_until 20 connected_to "$port" || fail "the client does not connect"
    kill -INT "$endless"
    join "$endless" 8
    expect_status 1 "a client interrupted while it connects"
    expect_text endless.err interrupted "a client interrupted while it connects"
    kill -KILL "$server"
    forget "$server"
    server=
    say "ends that fail while connections come: good"
}

# wrong TEXT ARGUMENTS...: exit status 2, and a message that has TEXT in it
wrong() {
    text=$1
    shift
    status=0
    timeout 20 "$ndkperf" "$@" >"$scratch/wrong.out" 2>"$scratch/wrong.err" || status=$?
    expect_status 2 "$*"
    expect_text wrong.err "$text" "$*"
    [ ! -s "$scratch/wrong.out" ] || fail "$*: something on stdout"
}

wrong_arguments() {
    wrong "--server, --client and --self"
    wrong "not two" -s --self
    wrong "'65536'" -s -p 65536
    wrong "'localhost'" -c localhost
    wrong "'0'" -c 127.0.0.1 -p 0
    wrong "'17M'" --self -S 17M
    wrong "'frob'" --self --op frob
    wrong "send, write, read, send-inv, fastreg" --self --op frob
    wrong "bw, lat, rate, conn" --self --mode frob
    wrong "spin, event" --self --wait frob
    wrong "on or off" --self --crc maybe
    wrong "one of them" --self -n 5 -D 5
    wrong "--depth" --self --mode lat -t 5
    wrong "have 8, need" --self --defer 9 -t 8
    wrong "--round-robin" --self --round-robin
    wrong "tells its target nothing" --self --mode lat --op write --wait event
    wrong "token" --self --op fastreg -S 2
    wrong "--json" -s --json
    wrong "--op: is the client's" -s --op write
    wrong "inline, engine, adaptive" --self --progress frob
    wrong "local, placed, acked" --self --completion frob
    wrong "no_such" --self -o no_such=1
    wrong "local, placed or acked" --self -o completion=frob
    wrong "'9999'" --self --cpu 9999
    wrong "999: not a processor" --self --cpu 999
    wrong "need 130" --self --verify -n 100 --buffers 3
    wrong "--pages" --self --pages 4
    wrong "--no-reg" --self --op write --no-reg
    wrong "have 2, need --threads (4)" --self -q 2 -T 4
    wrong "--inline" --self --op read --inline 64
    wrong "--mode conn" --self --mode conn -a
    wrong "have spin" --self --mode conn --wait spin
    wrong "--bogus" --self --bogus
    wrong "-n" --self -n
    wrong "words" --self 127.0.0.1 words
    say "wrong arguments: good"
}

wrong_arguments
both_in_one
few
conditions
self_fails
fails_between
no_files
serve
every_one
manners
agreed
printed
refused
client_killed
kill -TERM "$server"
join_server
expect_status 0 "server, SIGTERM"
serve
server_killed
once
once_more
say "good"
