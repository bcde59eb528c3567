#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check.sh plain|asan|tsan|clang|coverage|red - builds one variant in a directory of its own and runs its
# tests. The last lines are those of ctest, or of tests/red/run.py for red.
#
# From the environment: TEST_JOBS (default 3: tests wait more than
# they compute), CTEST_ARGS, RED_ARGS, and what build.sh takes.
set -eu

cd "$(dirname "$0")/.."
variant=$1
jobs=${TEST_JOBS:-3}
prefix=

run_ctest() {
    # shellcheck disable=SC2086 # a prefix and a list of arguments, or nothing
    exec $prefix python3 scripts/run_ctest.py "$1" --output-on-failure --no-tests=error "-j$jobs" \
        ${CTEST_ARGS:-}
}

# ThreadSanitizer lays its shadow at fixed addresses, and the compiler's version may be too old for
# the address randomisation of the kernel it runs on. Then the tests run without that.
find_tsan_prefix() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-tsan.XXXXXX")
    echo 'int main(void) { return 0; }' >"$scratch/probe.c"
    "${CC:-cc}" -fsanitize=thread "$scratch/probe.c" -o "$scratch/probe"
    # Chance decides whether it fails, so several times.
    for _ in 1 2 3 4 5 6 7 8; do
        if ! "$scratch/probe" 2>/dev/null; then
            prefix="setarch $(uname -m) -R"
            echo "check: running without address randomisation: ThreadSanitizer needs it here"
            break
        fi
    done
    if ! $prefix "$scratch/probe"; then
        echo "check: ThreadSanitizer does not run on this machine" >&2
        rm -rf "$scratch"
        exit 1
    fi
    rm -rf "$scratch"
}

case $variant in
plain)
    scripts/build.sh build all -DSOFTNDK_TESTS=ON
    run_ctest build
    ;;
asan)
    scripts/build.sh build-asan all -DSOFTNDK_TESTS=ON -DSOFTNDK_SANITIZE=address,undefined
    ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}
    UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export ASAN_OPTIONS UBSAN_OPTIONS
    run_ctest build-asan
    ;;
tsan)
    scripts/build.sh build-tsan all -DSOFTNDK_TESTS=ON -DSOFTNDK_SANITIZE=thread
    find_tsan_prefix
    TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}
    export TSAN_OPTIONS
    run_ctest build-tsan
    ;;
clang)
    if ! command -v clang >/dev/null 2>&1; then
        echo "check: clang is not installed (apt-get install -y --no-install-recommends clang)" >&2
        exit 1
    fi
    CC=clang
    export CC
    if command -v clang++ >/dev/null 2>&1; then
        CXX=clang++
        export CXX
    fi
    scripts/build.sh build-clang all -DSOFTNDK_TESTS=ON
    run_ctest build-clang
    ;;
coverage)
    scripts/build.sh build-coverage all -DSOFTNDK_TESTS=ON -DSOFTNDK_COVERAGE=ON
    find build-coverage -name '*.gcda' -delete
    CTEST_ARGS="-LE models|net ${CTEST_ARGS:-}"
    (run_ctest build-coverage)
    exec tests/coverage.py --build build-coverage provider=92 conn=92 iwarp engine --branches iwarp=95
    ;;
red)
    scripts/build.sh build-red all -DSOFTNDK_TESTS=ON -DSOFTNDK_RED=ON
    # Breached tests mostly wait: twice as many at a time.
    # shellcheck disable=SC2086
    exec python3 tests/red/run.py --build build-red -j "$((jobs * 2))" ${RED_ARGS:-}
    ;;
*)
    echo "usage: $0 plain|asan|tsan|clang|red" >&2
    exit 2
    ;;
esac
