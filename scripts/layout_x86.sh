#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the static assertions of tests/headers/layout_x86.c as 32-bit code. Nothing is linked or
# run, and -ffreestanding needs no 32-bit C library. Exits 77 where the compiler has no 32-bit mode.
set -eu

cc=${CC:-cc}
source=${SOFTNDK_SOURCE_DIR:-$(dirname "$0")/..}

if ! echo 'typedef int probe[sizeof(void *) == 4 ? 1 : -1];' |
    "$cc" -x c -std=gnu11 -m32 -ffreestanding -fsyntax-only - 2>/dev/null; then
    echo "skipped: $cc cannot compile with -m32"
    exit 77
fi
"$cc" -std=gnu11 -Wall -Wextra -Werror -m32 -ffreestanding -fsyntax-only \
    -I"$source/include/ndk" -I"$source/include/nt" -I"$source/include/softndk" \
    "$source/tests/headers/layout_x86.c"
echo "32-bit layouts: good ($cc)"
