#!/bin/sh
# SPDX-License-Identifier: MIT
#
# stress-seeds.sh N [SECONDS] - runs the stress test with N different seeds, SECONDS (3) each, two
# at a time, and ends with `N passed, N failed`, before it the seeds that failed with the end of
# what they said. Status 1 if any failed.
#
# SOFTNDK_BUILD_DIR: the build to test (build). SOFTNDK_TEST_SEED: the first seed; the others follow
# it by number. Under ThreadSanitizer, where it needs that: setarch -R tests/stress-seeds.sh N
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 N [SECONDS]" >&2
    exit 2
fi
count=$1
SOFTNDK_STRESS_S=${2:-3}
export SOFTNDK_STRESS_S
build=${SOFTNDK_BUILD_DIR:-$(dirname "$0")/../build}
program=$build/bin/tests/integration_race_stress_test
if [ ! -x "$program" ]; then
    echo "$0: there is no $program (make check builds it)" >&2
    exit 2
fi
first=${SOFTNDK_TEST_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
logs=$(mktemp -d "${TMPDIR:-/tmp}/softndk-seeds.XXXXXX")
trap 'rm -rf "$logs"' EXIT
echo "seeds $first to $((first + count - 1)), $SOFTNDK_STRESS_S s each"

# A run that does not end by itself: the test gives up after 60 s of waiting, so this is longer.
# shellcheck disable=SC2016 # expanded by the inner shell
seq "$first" $((first + count - 1)) | xargs -P 2 -n 1 sh -c '
    log=$1/$4
    if SOFTNDK_TEST_SEED=$4 timeout -k 10 $((SOFTNDK_STRESS_S * 20 + 300)) "$2" >"$log" 2>&1; then
        rm -f "$log"
    else
        echo "status $?" >>"$log"
    fi' sh "$logs" "$program" --

failed=0
for log in "$logs"/*; do
    [ -e "$log" ] || continue
    failed=$((failed + 1))
    echo "FAILED: SOFTNDK_TEST_SEED=$(basename "$log")"
    tail -n 25 "$log" | sed 's/^/    | /'
done
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
