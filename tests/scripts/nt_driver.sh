#!/bin/sh
# SPDX-License-Identifier: MIT
#
# nt_driver.sh - compiles the driver of tests/nt as a user would: shared library, headers of every
# spelling, -fms-extensions -fshort-wchar, each compiler there is; runs it, and looks at its log.
set -eu
prefix= # before the program that is run

source=${SOFTNDK_SOURCE_DIR:?}
build=${SOFTNDK_BUILD_DIR:?}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-nt-driver.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

includes="-I$source/include/softndk -I$source/include/ndk -I$source/include/nt -I$build/include/case"
sanitize=$(sed -n 's/^SOFTNDK_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")

run() {
    cc=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # a list of flags
    "$cc" -std=gnu11 -O1 -g -Wall -Wextra -Werror -Wno-multichar -Wno-builtin-declaration-mismatch \
        -Wno-incompatible-library-redeclaration -Wno-unknown-warning-option \
        -fms-extensions -fshort-wchar $includes "$@" -c "$source/tests/nt/driver.c" \
        -o "$scratch/driver.o"
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -g -Wall -Wextra -Werror $includes "$@" "$source/tests/nt/host.c" \
        "$scratch/driver.o" -o "$scratch/host" -L"$build/lib" -Wl,-rpath,"$build/lib" -lsoftndk
    rm -rf "$scratch/files"
    # shellcheck disable=SC2086 # a command, or nothing
    SOFTNDK_FILES=$scratch/files ${prefix:-} "$scratch/host" 2>"$scratch/said" || {
        cat "$scratch/said"
        echo "nt_driver: $name: failed"
        exit 1
    }
    printf 'driver: \\Registry\\Machine\\System\\CurrentControlSet\\Services\\Test\n' |
        cmp -s - "$scratch/said" || {
        cat "$scratch/said"
        echo "nt_driver: $name: said something else"
        exit 1
    }
    printf '20 items, status 0x00000000\r\nport 4420, unloaded\r\n' |
        cmp -s - "$scratch/files/C/driver-result.txt" || {
        cat "$scratch/files/C/driver-result.txt"
        echo "nt_driver: $name: another log"
        exit 1
    }
    echo "nt_driver: $name: good"
}

# The library is plain, the driver is not: its locks, events and pool must still be understood.
run_sanitized() {
    cc=$1 what=$2
    echo 'int main(void) { return 0; }' >"$scratch/probe.c"
    "$cc" -fsanitize="$what" "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null || return 0
    prefix=
    if [ "$what" = thread ]; then
        # Older ones cannot bear the address randomisation of newer kernels.
        prefix="setarch $(uname -m) -R"
        $prefix "$scratch/probe" 2>/dev/null || return 0
    fi
    run "$cc" "$cc, driver with $what, library without" -fsanitize="$what"
    [ "$what" = thread ] || return 0
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -g $includes -fsanitize=thread "$source/tests/nt/lock_order.c" \
        -o "$scratch/order" -L"$build/lib" -Wl,-rpath,"$build/lib" -lsoftndk
    $prefix "$scratch/order" right || {
        echo "nt_driver: $cc: a right order is reported"
        exit 1
    }
    for fault in order race; do
        if $prefix "$scratch/order" "$fault" 2>"$scratch/said"; then
            echo "nt_driver: $cc: the $fault fault is not reported"
            exit 1
        fi
    done
    echo "nt_driver: $cc: lock orders and races are seen"
}

if [ -n "$sanitize" ]; then
    # The library is built with it, so the program must be, by the same compiler.
    run "${CC:-cc}" "${CC:-cc} with $sanitize" -fsanitize="$sanitize"
    exit 0
fi
ran=
for cc in ${CC:-cc} gcc clang; do
    command -v "$cc" >/dev/null 2>&1 || continue
    path=$(readlink -f "$(command -v "$cc")")
    case " $ran " in *" $path "*) continue ;; esac
    ran="$ran $path"
    run "$cc" "$cc"
    run "$cc" "$cc, checked build" -DDBG=1
    run_sanitized "$cc" address
    run_sanitized "$cc" thread
    prefix=
done
