#!/bin/sh
# SPDX-License-Identifier: MIT
#
# softndk_run_places.sh - softndk-run tells the place in the driver's source for each way a driver
# can end (tests/run/dying.c): a crash, a stack that is used up, a call of nothing, a bug check, a
# finding of an object. And a thread that ends in the middle is no fault to AddressSanitizer.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}/tests/run/dying.c
cc=$build/bin/softndk-cc
run=$build/bin/softndk-run
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-run-places.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$scratch"
ulimit -c 0

fail() {
    echo "softndk_run_places: FAILED: $*" >&2
    [ ! -s said ] || tail -n 25 said >&2
    exit 1
}

# expect WHAT STATUS ARGUMENT...
expect() {
    what=$1 wanted=$2
    shift 2
    status=0
    timeout 100 "$run" --idle 0.2 "$@" >said 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || fail "$what: exit status $status (need $wanted)"
    echo "softndk_run_places: $what: good"
}
says() { grep -q -- "$1" said || fail "$what: does not say '$1'"; }

# place FUNCTION MARK: the line of source that has the mark at its end.
place() {
    command -v addr2line >/dev/null 2>&1 || return 0
    line=$(sed -n "\\|/\\* $2 \\*/\$|=" "$source")
    says "^softndk-run:     in $1 at dying.c:$line\\b"
}

sanitized=$(sed -n 's/^SOFTNDK_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
# -fno-optimize-sibling-calls: the recursion is one.
"$cc" -g -O0 -fno-optimize-sibling-calls -Wall -Wextra -Werror "$source" -o dying.so

expect "an object closed twice" 1 dying.so Mode=5
says 'finding: cq #2: NdkClose: closed twice, rule C2, called from .*dying.so+0x'
place CloseTwice twice
expect "a thread that ends in the middle" 0 dying.so Mode=7

# A sanitizer in this process tells of crashes itself.
if [ -z "$sanitized" ]; then
    expect "a crash" 139 dying.so Mode=1
    says '^softndk-run: crash: SIGSEGV: .*(address 0x10), at IRQL 0$'
    ! grep -q '^  ?' said || fail "$what: frames without a name have one of '?'"
    place Work crash
    for mode in 2 6; do
        expect "a stack used up, mode $mode" 139 dying.so "Mode=$mode"
        says '^softndk-run: crash: SIGSEGV: the stack is used up: '
        place Deep deep
    done
    expect "a call of nothing" 139 dying.so Mode=3
    says '^softndk-run: crash: SIGSEGV: '
    [ "$(uname -m)" != x86_64 ] || place Work nowhere
    expect "a bug check" 134 dying.so Mode=4
    says 'bug check 0xE2 MANUALLY_INITIATED_CRASH'
    place Work bugcheck

    for kind in gcc clang; do
        command -v "$kind" >/dev/null 2>&1 || continue
        "$cc" "--$kind" -g -fsanitize=address "$source" -o address.so 2>said || continue
        for pend in never always; do
            expect "a thread that ends in the middle, $kind, AddressSanitizer, $pend" 0 \
                --pend "$pend" address.so Mode=7
            says '^softndk-run: clean$'
        done
    done
fi
echo "softndk_run_places: good"
