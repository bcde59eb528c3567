#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkstat.sh BUILD_DIRECTORY - ndkstat against both ends of an ndkping: the columns of netstat -xan,
# counters, JSON; processes that are dead, stopped or not shown; wrong arguments.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

ndkstat=$build/bin/ndkstat
# A directory of the test's own: others of this user are not asked, and stay undisturbed.
SOFTNDK_STAT=$scratch/stat
export SOFTNDK_STAT

# ask ARGUMENTS...: its exit status in $status, what it says in stat.out and stat.err
ask() {
    status=0
    timeout "$step_s" "$ndkstat" "$@" >"$scratch/stat.out" 2>"$scratch/stat.err" || status=$?
}

# rows PATTERN: how many lines of stat.out match
rows() { grep -cE -- "$1" "$scratch/stat.out" || true; }

expect_rows() {
    [ "$(rows "$2")" -eq "$1" ] || fail "$3: not $1 rows '$2'"
}

nobody() {
    ask -xan
    expect_status 0 "without a process"
    expect_text stat.out "Active NetworkDirect Connections, Listeners, SharedEndpoints" "header"
    expect_rows 1 '^  Mode   IfIndex Type           Local Address          Foreign Address        PID$' \
        "header"
    expect_rows 0 '^  Kernel ' "without a process"
    ask --pid $$
    expect_status 1 "a process that shows nothing"
    expect_text stat.err "process $$: shows nothing" "a process that shows nothing"
}

up() { ask && [ "$(rows '^  Kernel .* Connection ')" -eq 2 ]; }

start_ends() {
    start_server 127.0.0.1 -P
    : >"$scratch/endless.out"
    "$ndkping" -c -a "$address" -p "$port" -V -S 4096 \
        >"$scratch/endless.out" 2>"$scratch/endless.err" &
    client=$!
    started="$started $client"
    wait_until 30 up || fail "no two rows of connections"
}

columns() {
    there="127\\.0\\.0\\.1:$port"
    any="127\\.0\\.0\\.1:[0-9]+"
    ask -xan
    expect_status 0 "both ends"
    expect_rows 1 "^  Kernel +$index Listener       $there +NA +$server\$" "the listener"
    expect_rows 1 "^  Kernel +$index Connection     $there +$any +$server\$" "the server's end"
    expect_rows 1 "^  Kernel +$index Connection     $any +$there +$client\$" "the client's end"
    expect_rows 3 '^  Kernel ' "both ends"
    ask --pid "$client"
    expect_status 0 "--pid"
    expect_rows 1 '^  Kernel ' "--pid"
}

counters() {
    ask -e
    expect_status 0 "-e"
    expect_rows 1 "^NetworkDirect counters of interface $index \(lo\), PID $server \(ndkping\)\$" "-e"
    for name in Connect Accept ConnectFailure ConnectionError ActiveConnection CQError \
        RDMAInOctets RDMAOutOctets RDMAInFrames RDMAOutFrames; do
        expect_rows 2 "^  $name +[0-9]+\$" "-e"
    done
    expect_rows 2 "^  ActiveConnection +1\$" "-e"
}

json() {
    ask --json
    expect_status 0 "--json"
    [ "$(wc -l <"$scratch/stat.out")" -eq 1 ] || fail "--json: not one line"
    python3 - "$scratch/stat.out" "$server" "$client" "$port" <<'END' || fail "--json: not what is promised"
import json, sys
path, server, client, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
told = json.load(open(path))
processes = {p["Pid"]: p for p in told["Processes"]}
assert set(processes) == {server, client}, processes.keys()
for p in processes.values():
    assert p["Program"] == "ndkping" and p["Softndk"] == told["Softndk"] and p["Complete"] is True
    (interface,) = p["Interfaces"]
    counters = interface["Counters"]
    assert list(counters) == [
        "Connect", "Accept", "ConnectFailure", "ConnectionError", "ActiveConnection", "CQError",
        "RDMAInOctets", "RDMAOutOctets", "RDMAInFrames", "RDMAOutFrames"]
    assert counters["ActiveConnection"] == 1 and counters["RDMAOutFrames"] > 0
    assert (counters["Connect"], counters["Accept"]) == ((0, 1) if p["Pid"] == server else (1, 0))
kinds = sorted(e["Type"] for e in processes[server]["Endpoints"])
assert kinds == ["Connection", "Listener"], kinds
(end,) = processes[client]["Endpoints"]
assert end["ForeignAddress"] == "127.0.0.1:" + port == end["HostForeignAddress"]
assert end["Mode"] == "Kernel" and end["IfIndex"] == processes[client]["Interfaces"][0]["IfIndex"]
(listener,) = [e for e in processes[server]["Endpoints"] if e["Type"] == "Listener"]
assert listener["LocalAddress"] == "127.0.0.1:" + port and "ForeignAddress" not in listener
END
}

turned_twice() { [ "$(grep -c '^{.*}$' "$scratch/turns.out")" -ge 2 ]; }

repeated() {
    : >"$scratch/turns.out"
    "$ndkstat" --json -w 1 >"$scratch/turns.out" 2>"$scratch/turns.err" &
    turns=$!
    started="$started $turns"
    wait_until 60 turned_twice || fail "-w 1: no second turn"
    kill -TERM "$turns"
    wait "$turns" 2>/dev/null || true
    forget "$turns"
}

# A stopped process is named, and those that run are shown nevertheless.
stopped() {
    kill -STOP "$client"
    ask
    kill -CONT "$client"
    expect_status 1 "a stopped process"
    expect_text stat.err "process $client: does not answer" "a stopped process"
    expect_rows 2 "^  Kernel .* $server\$" "a stopped process"
}

# A process at many sockets, whose answers are none: each is named, and nothing else is lost.
strange_answers() {
    python3 - "$SOFTNDK_STAT" >"$scratch/strange.out" <<'END' &
import os, socket, sys
first = b'{"kind":"process","format":1,"softndk":"9","pid":1,"program":"x"}\n'
answers = [
    b"hello\n",
    b"\0\n{}\n",
    b'{"kind":"process","format":2}\n',
    b'{"kind":"end","complete":true}\n',
    first,
    first + b'{"kind":"listener"',
    first + b'{"kind":"a\\u12"}\n',
    first + b'{"kind":"listener","index":-1}\n',
    first + b'{"index":99999999999999999999}\n',
    first + b'{"kind":["x"]}\n',
    first + b'{"kind":"a"}}\n',
    first + b'{"kind":"end","complete":false}\n',
]
paths = [f"{sys.argv[1]}/{2000000000 + number}.sock" for number in range(len(answers))]
listening = [socket.socket(socket.AF_UNIX) for path in paths]
for one, path in zip(listening, paths):
    one.bind(path)
    one.listen()
print("listening", flush=True)
for one, path, answer in zip(listening, paths, answers):
    taken, _ = one.accept()
    taken.sendall(answer)
    taken.close()
    os.unlink(path)
END
    strange=$!
    started="$started $strange"
    wait_until 20 grep -q listening "$scratch/strange.out" || fail "no strange process"
    ask
    expect_status 1 "strange answers"
    expect_rows 3 '^  Kernel ' "beside strange answers"
    sort "$scratch/stat.err" | uniq -c | sed "s/^ *//; s/process $strange: //" >"$scratch/said.out"
    for line in "1 ndkstat: line 1 of its answer cannot be read" \
        "5 ndkstat: line 2 of its answer cannot be read" \
        "1 ndkstat: answers in another format (have 2, need 1)" \
        "1 ndkstat: answers in another format (have 0, need 1)" \
        "1 ndkstat: its answer ends after 0 lines, before its end" \
        "2 ndkstat: its answer ends after 1 lines, before its end" \
        "1 ndkstat: has more open than it could tell"; do
        expect_text said.out "$line" "strange answers"
    done
    join "$strange" 20
}

# What a killed process leaves is not shown, and goes.
killed() {
    kill -KILL "$client"
    wait "$client" 2>/dev/null || true
    forget "$client"
    [ -S "$SOFTNDK_STAT/$client.sock" ] || fail "a killed process has no socket left"
    ask
    expect_status 0 "a killed process"
    expect_rows 0 " $client\$" "a killed process"
    [ ! -e "$SOFTNDK_STAT/$client.sock" ] || fail "a killed process's socket is not removed"
    kill -TERM "$server"
    join_server
    [ -z "$(ls "$SOFTNDK_STAT")" ] || fail "$(ls "$SOFTNDK_STAT") is left"
}

# Not shown: by wish, and where the directory is not good, which never fails the process.
not_shown() {
    SOFTNDK_STAT=0 start_server 127.0.0.1 -P
    [ -z "$(ls "$SOFTNDK_STAT")" ] || fail "SOFTNDK_STAT=0: a socket"
    kill -TERM "$server"
    join_server
    [ ! -s "$scratch/server.err" ] || fail "SOFTNDK_STAT=0: something on stderr"
    chmod 755 "$SOFTNDK_STAT"
    start_server 127.0.0.1 -P
    expect_text server.err "is open to others (have mode 0755, need 0700)" "an open directory"
    ask
    expect_status 1 "an open directory"
    expect_text stat.err "is open to others (have mode 0755, need 0700)" "an open directory"
    run_client -C 1
    expect_status 0 "client of a server that is not shown"
    kill -TERM "$server"
    join_server
    chmod 700 "$SOFTNDK_STAT"
}

# Without the variable: XDG_RUNTIME_DIR. Only this test's process is looked for.
runtime_directory() {
    mkdir "$scratch/runtime"
    (
        unset SOFTNDK_STAT
        XDG_RUNTIME_DIR=$scratch/runtime
        export XDG_RUNTIME_DIR
        start_server 127.0.0.1 -P
        [ -S "$scratch/runtime/softndk/$server.sock" ] || fail "no socket in XDG_RUNTIME_DIR"
        ask --pid "$server"
        expect_status 0 "XDG_RUNTIME_DIR"
        expect_rows 1 "^  Kernel .* Listener .* $server\$" "XDG_RUNTIME_DIR"
        kill -TERM "$server"
        join_server
    )
}

wrong() {
    text=$1
    shift
    ask "$@"
    expect_status 2 "$*"
    expect_text stat.err "$text" "$*"
}

wrong_arguments() {
    wrong "--wait '0'" -w 0
    wrong "--wait '1s'" --wait=1s
    wrong "--pid 'x'" --pid x
    wrong "--pid: needs a value" --pid
    wrong "-q: no such option" -q
    wrong "--bogus: no such option" --bogus
    wrong "more: unexpected argument" more
    ask --help
    expect_status 0 "--help"
    ask --version
    expect_rows 1 '^ndkstat [0-9]' "--version"
}

index=$("$ndkinfo" 127.0.0.1 | sed -n 's/^InterfaceIndex: //p')
wrong_arguments
nobody
start_ends
columns
counters
if command -v python3 >/dev/null 2>&1; then
    json
else
    say "no python3: JSON is not read"
fi
repeated
if command -v python3 >/dev/null 2>&1; then
    strange_answers
fi
stopped
killed
not_shown
runtime_directory
say "good"
