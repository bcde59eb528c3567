#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh [target...] - fuzzes each target for FUZZ_S seconds (60) with libFuzzer, ASan and UBSan, beginning
# with tests/fuzz/corpus. `make fuzz` calls it. An input that breaks something is kept in
# build-fuzz/found/TARGET-*; `build-fuzz/bin/fuzz/fuzz_TARGET FILE` runs it again. New inputs stay in
# build-fuzz/corpus; FUZZ_KEEP=1 writes those that reach new code into tests/fuzz/corpus.
#
# The last line is `N passed, N failed`, one a target. Without clang and its libFuzzer all of it is
# skipped, with the reason, and that is no failure.
set -eu

cd "$(dirname "$0")/../.."
root=$PWD
seconds=${FUZZ_S:-60}
CC=${CC_FUZZ:-clang}
export CC
if ! echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n) { return 0; }' |
    "$CC" -x c -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null; then
    echo "fuzz: skipped: no $CC with libFuzzer" \
        "(apt-get install -y --no-install-recommends clang libclang-rt-dev)"
    echo "1 skipped"
    echo "0 passed, 0 failed"
    exit 0
fi
scripts/build.sh build-fuzz fuzz_targets -DSOFTNDK_TESTS=ON -DSOFTNDK_FUZZ=ON \
    -DSOFTNDK_SANITIZE=address,undefined
[ $# -gt 0 ] || set -- $(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')

passed=0
failed=0
for target; do
    new=build-fuzz/corpus/$target
    mkdir -p "$new" build-fuzz/found
    echo "== $target, $seconds s"
    if (cd build-fuzz &&
        ASAN_OPTIONS=detect_leaks=1 bin/fuzz/fuzz_$target -max_total_time="$seconds" -timeout=60 \
            -max_len=4096 -print_final_stats=1 -artifact_prefix="found/$target-" \
            "corpus/$target" "$root/tests/fuzz/corpus/$target" >"fuzz-$target.log" 2>&1); then
        passed=$((passed + 1))
        grep -E 'number_of_executed_units|new_units_added' "build-fuzz/fuzz-$target.log"
    else
        failed=$((failed + 1))
        tail -n 40 "build-fuzz/fuzz-$target.log"
    fi
    if [ "${FUZZ_KEEP:-0}" = 1 ]; then
        (cd build-fuzz && bin/fuzz/fuzz_$target -set_cover_merge=1 "$root/tests/fuzz/corpus/$target" \
            "corpus/$target" >"merge-$target.log" 2>&1)
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
