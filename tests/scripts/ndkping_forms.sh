#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ndkping_forms.sh BUILD_DIRECTORY - the command lines of Windows' NDKPing: both ends, in letters of
# either case and with our own options beside them, and what wrong ones are answered.
set -eu

# shellcheck source=tests/scripts/lib.sh
. "$(dirname "$0")/lib.sh"

index=$("$ndkinfo" 127.0.0.1 | sed -n 's/^InterfaceIndex: //p')
[ -n "$index" ] || fail "ndkinfo does not tell the index of 127.0.0.1"
nowhere=4294967295

# start ARGUMENTS...: a server by NDKPing's form
start() {
    : >"$scratch/server.out"
    "$ndkping" "$@" >"$scratch/server.out" 2>"$scratch/server.err" &
    server=$!
    started="$started $server"
    port=
    wait_until 20 has_port || fail "server $*: not listening after 20 s"
    [ -n "$port" ] || fail "server $*: ended before it listened"
}

# end ARGUMENTS...: a client by NDKPing's form; its exit status in $status
end() {
    status=0
    timeout "$step_s" "$ndkping" "$@" >"$scratch/client.out" 2>"$scratch/client.err" || status=$?
}

both_ends() {
    start -S -ServerAddr 127.0.0.1:0 -ServerIf "$index" -TestType rping -W 60
    end -C -ServerAddr "127.0.0.1:$port" -ClientAddr 127.0.0.1 -ClientIf "$index" -TestType rping -V
    expect_status 0 "client, NDKPing's form"
    expect_text client.out "10 iterations of 64 octets, verified at both ends" "client, NDKPing's form"
    join_server
    expect_status 0 "server, NDKPing's form"
}

# The address by the interface alone, at either end; -S and -C with numbers are ours.
either_case() {
    start -serverif "$index" -TESTTYPE RPing -p 0 -s -S 100
    end -SERVERADDR 127.0.0.1 -p "$port" -clientif "$index" -c -C 3 -S 100
    expect_status 0 "client, its interface alone"
    expect_text client.out "3 iterations of 100 octets" "client, its interface alone"
    join_server
    expect_status 0 "server, its interface alone"
}

over_ipv6() {
    start -S -ServerAddr '[::1]:0'
    end -C -ServerAddr "[::1]:$port" -ClientAddr ::1
    expect_status 0 "client, [::1]"
    join_server
    expect_status 0 "server, [::1]"
}

nobody_comes() {
    end -S -ServerAddr 127.0.0.1:0 -W 1
    expect_status 1 "server that nobody comes to"
    expect_text client.err "no client came in 1 s" "server that nobody comes to"
}

# wrong TEXT ARGUMENTS...: exit status 2, and a message that has TEXT in it
wrong() {
    text=$1
    shift
    end "$@"
    expect_status 2 "$*"
    expect_text client.err "$text" "$*"
}

wrong_values() {
    wrong "-ServerAddr: needs a value" -S -ServerAddr
    wrong "-ServerAddr 'host:1'" -S -serveraddr host:1
    wrong "-ServerAddr '127.0.0.1:70000'" -S -ServerAddr 127.0.0.1:70000
    wrong "-ClientAddr '127.0.0.1:5'" -C -ServerAddr 127.0.0.1:5 -ClientAddr 127.0.0.1:5
    wrong "-ServerIf 'eth0': need an interface's index" -S -ServerIf eth0
    wrong "-ClientIf '0'" -C -ServerAddr 127.0.0.1:5 -ClientIf 0
    wrong "-TestType 'read': need rping" -S -TestType read
    wrong "-ServerIf: is given twice" -S -ServerIf 1 -serverif 1
    wrong "-ServerIf '1': is the server's" -C -ServerAddr 127.0.0.1:5 -ServerIf 1
    wrong "-ClientAddr: is the client's" -S -ServerAddr 127.0.0.1:0 -ClientAddr 127.0.0.1
    wrong "port 5, and --port gave 6" -S -ServerAddr 127.0.0.1:5 -p 6
    wrong "-ServerAddr '127.0.0.1': --address gave" -S -ServerAddr 127.0.0.1 -a 127.0.0.2
    wrong "not both" -S -C -ServerAddr 127.0.0.1
    wrong "server's address" -C -TestType rping
    wrong "-LogFilename 'x.log'" -C -ServerAddr 127.0.0.1:5 -LogFilename x.log
    wrong "--wait: is the server's" -C -ServerAddr 127.0.0.1:5 -W 5
    wrong "--wait '0'" -s -W 0
    # Without a long form -S is a size, as ever.
    wrong "-S: needs a value" -s -S
    end -S -ServerAddr 127.0.0.1:0 -ServerIf "$nowhere"
    expect_status 1 "server on no interface"
    expect_text client.err "$nowhere" "server on no interface"
    end -C -ServerAddr 127.0.0.1:5 -ClientIf "$nowhere"
    expect_status 1 "client on no interface"
    expect_text client.err "interface $nowhere: there is none" "client on no interface"
}

wrong_values
both_ends
either_case
if has_ipv6_loopback; then
    over_ipv6
else
    say "::1: not here, left out"
fi
nobody_comes
say "good"
