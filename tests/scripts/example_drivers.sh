#!/bin/sh
# SPDX-License-Identifier: MIT
#
# example_drivers.sh - each driver of examples/drivers, as it was built, under softndk-run in every
# way in which calls may complete: it must say that it is done, and leave nothing.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}
run=$build/bin/softndk-run
said=$(mktemp "${TMPDIR:-/tmp}/softndk-examples.XXXXXX")
trap 'rm -f "$said"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ran=0
for file in "$source"/examples/drivers/*; do
    name=$(basename "$file" .c)
    for mode in never always early random:7; do
        status=0
        "$run" --timeout 100 --idle 0.2 --pend "$mode" "$build/bin/examples/$name.so" \
            >"$said" 2>&1 || status=$?
        if [ "$status" -ne 0 ] || ! grep -q "^$name: done" "$said" ||
            ! grep -q '^softndk-run: clean$' "$said"; then
            echo "example_drivers: FAILED: $name, $mode: exit status $status (need 0, done, clean)" >&2
            tail -n 15 "$said" >&2
            exit 1
        fi
        echo "example_drivers: $name, $mode: good"
        ran=$((ran + 1))
    done
done
[ "$ran" -gt 0 ] || { echo "example_drivers: FAILED: no examples" >&2; exit 1; }
