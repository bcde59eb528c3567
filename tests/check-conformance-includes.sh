#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-conformance-includes.sh - the conformance kit can be built where there is no C library: every
# file but the one for this system and the door compiles freestanding, with include/ndk and
# include/nt and the compiler's own headers alone.
set -eu

cd "$(dirname "$0")/.."
cc=${CC:-cc}
own=$("$cc" -print-file-name=include)
count=0
for file in conformance/*.c; do
    case $file in
    */kit_os_linux.c | */door_softndk.c) continue ;;
    esac
    "$cc" -std=gnu11 -ffreestanding -nostdinc -isystem "$own" -Iinclude/ndk -Iinclude/nt \
        -Wall -Wextra -fsyntax-only "$file"
    count=$((count + 1))
done
[ "$count" -gt 20 ] || {
    echo "check-conformance-includes: only $count files" >&2
    exit 1
}
echo "check-conformance-includes: $count files need no C library"
