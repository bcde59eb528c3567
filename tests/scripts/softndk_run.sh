#!/bin/sh
# SPDX-License-Identifier: MIT
#
# softndk_run.sh - softndk-run with a driver that has one fault a mode (tests/run/faulty.c): what it
# says, how it ends, and that it ends.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}
cc=$build/bin/softndk-cc
run=$build/bin/softndk-run
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-run-test.XXXXXX")
started=
finish() {
    [ -z "$started" ] || kill -KILL "$started" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$scratch"
ulimit -c 0

fail() {
    echo "softndk_run: FAILED: $*" >&2
    [ ! -s said ] || tail -n 15 said >&2
    exit 1
}

# expect WHAT STATUS ARGUMENT...: how it ends; a limit in case it does not.
expect() {
    what=$1 wanted=$2
    shift 2
    status=0
    timeout 100 "$run" "$@" >said 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || fail "$what: exit status $status (need $wanted)"
    echo "softndk_run: $what: good"
}
says() { grep -q -- "$1" said || fail "$what: does not say '$1'"; }
clean() { says '^softndk-run: clean$'; }

"$cc" -g -Wall -Wextra -Werror "$source/tests/run/faulty.c"

expect clean 0 faulty.so Mode=clean
says '^softndk-run: faulty: DriverEntry: STATUS_SUCCESS (0x00000000)$'
says '^faulty: unloaded$'
clean
for mode in always early random:3; do
    expect "clean, --pend $mode" 0 --pend "$mode" --idle 0.2 faulty.so Mode=clean
    clean
done
expect "twice in one process" 0 --idle 0.2 faulty.so Mode=clean faulty.so Mode=nounload
says '^softndk-run: faulty2: remark: no DriverUnload'
expect "another name" 0 --idle 0.2 --name Nvme ./faulty.so Mode=clean
says '^softndk-run: Nvme: DriverEntry'

expect "pool left" 1 --idle 0.2 faulty.so Mode=pool
says "left: 1 pool block 'Fult', 100 bytes, .*made by DriverEntry.*faulty.so"
says '^softndk-run: not clean: 0 findings, 1 thing left$'
expect "an MDL left" 1 --idle 0.2 faulty.so Mode=mdl
says 'left: 1 MDL, .*made by DriverEntry'
expect "a work item left" 1 --idle 0.2 faulty.so Mode=work
says 'left: 1 work item, .*made by DriverEntry'
expect "an object left" 4 --timeout 4 faulty.so Mode=object
says 'left: adapter #1 on lo, open, made by .*faulty'
says 'left: adapter #1: 1 cq, open, #2, made by .*faulty'
says '^softndk-run: not done within 4 s$'
says '^softndk-run: not clean: 0 findings, 2 things left$'
if command -v addr2line >/dev/null 2>&1; then
    says 'in MakeCq at faulty.c:[0-9]'
fi
expect "a mapping left" 4 --timeout 4 faulty.so Mode=lam
says 'left: adapter #1: 1 logical address mapping, not released, made by .*faulty'
expect "a finding" 1 --idle 0.2 faulty.so Mode=finding
says '^softndk-run: finding: PAGED_CODE: IRQL too high'
says '^softndk-run: not clean: 1 finding, 0 things left$'
expect "a lock held" 1 --idle 0.2 faulty.so Mode=held
says 'left: spin lock .* is held by thread .*, taken by .*faulty'
expect "a thread ends with a lock" 1 --idle 0.2 faulty.so Mode=lock
says 'finding: a thread ended with the spin lock'

expect "DriverEntry fails" 3 faulty.so Mode=refuse
says 'DriverEntry failed: STATUS_INSUFFICIENT_RESOURCES (0xC000009A): .* resource'
expect "never done" 4 --timeout 3 faulty.so Mode=open
says '^softndk-run: not done within 3 s$'
clean
expect "DriverUnload blocks" 6 --idle 0.2 --unload-timeout 0.5 faulty.so Mode=hang
says 'DriverUnload has not returned for'
says 'DriverUnload has not returned: ended'
expect "DriverEntry blocks" 6 --timeout 0.5 faulty.so Mode=stuck
says 'DriverEntry has not returned: ended'
expect "an injected failure" 0 --idle 0.2 --fail NdkCreateCq:1:STATUS_INSUFFICIENT_RESOURCES \
    faulty.so Mode=clean
says '^faulty: no CQ$'
clean
expect "a bug check" 134 faulty.so Mode=bugcheck
says 'bug check 0xE2 MANUALLY_INITIATED_CRASH'
expect "findings abort" 134 --findings abort faulty.so Mode=finding

sanitized=$(sed -n 's/^SOFTNDK_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
if [ -z "$sanitized" ]; then
    expect "a crash" 139 faulty.so Mode=crash
    says '^softndk-run: crash: SIGSEGV: .*(address 0x10), at IRQL 0$'
    says 'faulty.so+0x'
fi

# A signal ends the wait; a second one ends the process.
signalled() {
    what=$1 mode=$2
    : >said # what the last one said is no sign of this one, which the signal could meet before it runs
    "$run" --idle never faulty.so "Mode=$mode" >said 2>&1 &
    started=$!
    turns=0
    until grep -q 'DriverEntry: STATUS' said; do
        turns=$((turns + 1))
        [ $turns -le 400 ] || fail "$what: does not begin"
        sleep 0.05
    done
    kill -INT "$started"
}
signalled "a signal" open
status=0
wait "$started" || status=$?
started=
[ "$status" -eq 0 ] || fail "a signal: exit status $status (need 0)"
says 'a signal asks to end'
clean

# timeout(1) sends to the process and to its group: two signals at once are one. Both are pending
# when the process goes on.
"$run" --idle never faulty.so Mode=open >said 2>&1 &
started=$!
turns=0
until grep -q 'DriverEntry: STATUS' said; do
    turns=$((turns + 1))
    [ $turns -le 400 ] || fail "two signals at once: does not begin"
    sleep 0.05
done
kill -STOP "$started"
kill -INT "$started"
kill -TERM "$started"
kill -CONT "$started"
status=0
wait "$started" || status=$?
started=
[ "$status" -eq 0 ] || fail "two signals at once: exit status $status (need 0)"
says 'a signal asks to end'
clean
echo "softndk_run: two signals at once: good"

signalled "two signals" hang
turns=0
until grep -q 'a signal asks to end' said; do
    turns=$((turns + 1))
    [ $turns -le 400 ] || fail "two signals: the first has no effect"
    sleep 0.05
done
# What comes at once belongs to the first, counted from when the first was taken, which may be late.
turns=0
while [ $turns -lt 20 ] && kill -0 "$started" 2>/dev/null; do
    turns=$((turns + 1))
    sleep 0.5
    kill -INT "$started" 2>/dev/null || true
done
status=0
wait "$started" || status=$?
started=
[ "$status" -eq 130 ] || fail "two signals: exit status $status (need 130)"
echo "softndk_run: signals: good"

# What cannot be run.
expect "no such file" 5 nothing.so
says 'nothing.so: No such file'
echo 'int x;' >empty.c
"$cc" empty.c
expect "no DriverEntry" 5 empty.so
says 'empty.so has no DriverEntry'
echo 'void ExNobody(void); long DriverEntry(void *d, void *p); long DriverEntry(void *d, void *p)
{ (void)d; (void)p; ExNobody(); return 0; }' >missing.c
"$cc" -Wl,-z,undefs missing.c 2>/dev/null || "$cc" -Wl,-z,nodefs missing.c 2>/dev/null || true
if [ -f missing.so ]; then
    expect "an undefined function" 5 missing.so
    says 'cannot load missing.so: .*undefined symbol: ExNobody'
fi
for arguments in "" "--timeout" "--timeout x faulty.so" "Mode=clean" "--nonsense 1 faulty.so" \
    "--pend sometimes faulty.so" "--fail nonsense faulty.so" "--name x" "--idle x faulty.so"; do
    # shellcheck disable=SC2086
    expect "usage: '$arguments'" 2 $arguments
    says '^softndk-run: '
done
expect --help 0 --help
says '^usage: softndk-run'
expect --version 0 --version

# A driver with a sanitizer in the plain program.
[ -z "$sanitized" ] || exit 0
for kind in gcc clang; do
    command -v "$kind" >/dev/null 2>&1 || continue
    for what in address thread; do
        "$cc" "--$kind" -g "-fsanitize=$what" "$source/tests/run/faulty.c" -o "$what.so" 2>said || {
            echo "softndk_run: $kind has no sanitizer $what here"
            continue
        }
        if [ "$kind$what" = clangthread ]; then
            # Its runtime cannot be loaded into a program that was built without it.
            expect "$kind, $what" 5 "$what.so" Mode=clean
            says 'softndk-cc --gcc$'
            continue
        fi
        expect "$kind, $what" 0 --pend always --idle 0.2 "$what.so" Mode=clean
        clean
    done
    [ -f address.so ] || continue
    status=0
    timeout 100 "$run" address.so Mode=crash >said 2>&1 || status=$?
    [ "$status" -ne 0 ] || fail "$kind: AddressSanitizer lets a crash pass"
    grep -q 'AddressSanitizer: SEGV' said || fail "$kind: AddressSanitizer does not say so"
    rm -f address.so thread.so
done
echo "softndk_run: good"
