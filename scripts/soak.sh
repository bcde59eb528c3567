#!/bin/sh
# SPDX-License-Identifier: MIT
#
# soak.sh [BUILD] - for SOAK_S seconds (600) in turn: many connections up and down in two processes, and
# the walker of random legal calls, each time with another seed and completion mode. Stops at the first
# failure and names what repeats it. `make soak` calls it.
set -eu

build=${1:-build}
end=$(($(date +%s) + ${SOAK_S:-600}))
turn=0
while [ "$(date +%s)" -lt "$end" ]; do
    seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
    for mode in never always early "random:$seed"; do
        [ "$(date +%s)" -lt "$end" ] || break
        turn=$((turn + 1))
        echo "== turn $turn: SOFTNDK_PEND=$mode SOFTNDK_TEST_SEED=$seed"
        SOFTNDK_PEND=$mode "$build/bin/tests/scale" -n 2000 -r 3 >"$build/soak.log" 2>&1 || {
            cat "$build/soak.log"
            echo "soak: failed: SOFTNDK_PEND=$mode $build/bin/tests/scale -n 2000 -r 3"
            exit 1
        }
        SOFTNDK_TEST_SEED=$seed SOFTNDK_SPIN_S=20 "$build/bin/tests/spin" >"$build/soak.log" 2>&1 || {
            cat "$build/soak.log"
            echo "soak: failed: SOFTNDK_TEST_SEED=$seed $build/bin/tests/spin"
            exit 1
        }
    done
done
echo "soak: $turn turns, good"
