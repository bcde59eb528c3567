#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check.sh - `make check-interop`: builds in build/ and runs tests/interop/run.py with INTEROP_ARGS.
# What this machine lacks skips the run, with the reason, and that is no failure; the last lines are
# `N skipped` and `N passed, N failed`.
set -eu

cd "$(dirname "$0")/../.."
scripts/setup.sh interop
scripts/build.sh build all -DSOFTNDK_TESTS=ON
status=0
# shellcheck disable=SC2086 # a list of arguments
python3 tests/interop/run.py --build build ${INTEROP_ARGS:-} || status=$?
[ "$status" -eq 77 ] || exit "$status"
