#!/bin/sh
# SPDX-License-Identifier: MIT
#
# profiles.sh BUILD_DIRECTORY - profiles as the programs see them: listed, chosen each way, refused
# in words; found in the build tree, where they were installed, and where that was moved to; and each
# profile talks to each other.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/scripts/lib.sh
. "$here/lib.sh"
build=$(cd "$build" && pwd)
ndkinfo=$build/bin/ndkinfo

profiles="default strict cx3 iwarp-rnic"
unset SOFTNDK_PROFILE SOFTNDK_PROFILE_DIR SOFTNDK_OPTIONS

# info PROGRAM ARGUMENT...: stdout and stderr in info.out, the exit status in status.
info() {
    status=0
    "$@" >"$scratch/info.out" 2>&1 || status=$?
}

# has TEXT: what the last program said.
has() {
    grep -qF -- "$1" "$scratch/info.out" || fail "nothing of: $1"
}

choosing() {
    info "$ndkinfo" --profiles
    expect_status 0 "ndkinfo --profiles"
    for name in $profiles; do
        grep -q "^$name  *[^ ]" "$scratch/info.out" || fail "no profile $name"
    done
    info "$ndkinfo" --profile strict lo
    expect_status 0 "--profile strict"
    has "FRMRPageCount: 16"
    SOFTNDK_PROFILE=strict
    export SOFTNDK_PROFILE
    info "$ndkinfo" lo
    has "FRMRPageCount: 16"
    info "$ndkinfo" --profile cx3 lo
    has "FRMRPageCount: 511"
    has "RdmaTechnology: RoCE"
    SOFTNDK_OPTIONS=profile=iwarp-rnic,max_cq_depth=77
    export SOFTNDK_OPTIONS
    info "$ndkinfo" lo
    has "FRMRPageCount: 128"
    has "MaxCqDepth: 77"
    unset SOFTNDK_PROFILE SOFTNDK_OPTIONS
    say "choosing: good"
}

refusing() {
    info "$ndkinfo" --profile absent lo
    expect_status 1 "a profile that is not there"
    has "profile absent: there is no such file in $build/share/softndk/profiles"
    info "$ndkinfo" --profile ../strict lo
    expect_status 1 "a bad name"
    info "$ndkinfo" --profile
    expect_status 2 "--profile without a name"
    mkdir "$scratch/own"
    printf 'crc = 0\r\nfrmr_pages = 8\r\n' >"$scratch/own/small"
    SOFTNDK_PROFILE_DIR=$scratch/own
    export SOFTNDK_PROFILE_DIR
    info "$ndkinfo" --profile small lo
    expect_status 1 "a profile with a fault"
    has "$scratch/own/small:2: option frmr_pages: have \"8\", need a number from 16 to 65536, pages"
    printf '# mine, for a test\nfrmr_pages = 18' >"$scratch/own/small"
    info "$ndkinfo" --profile small lo
    expect_status 0 "a profile of one's own"
    has "FRMRPageCount: 18"
    info "$ndkinfo" --profiles
    has "mine, for a test"
    has "compiled in"
    info "$ndkinfo" --profile strict lo # there, and nowhere else
    expect_status 1 "a profile of another directory"
    unset SOFTNDK_PROFILE_DIR
    say "refusing: good"
}

# at PREFIX: the programs there find the profiles there.
at() {
    info "$1/bin/ndkinfo" --profiles
    expect_status 0 "ndkinfo in $1"
    for name in $profiles; do
        has "$1/share/softndk/profiles/$name"
    done
    info "$1/bin/ndkinfo" --profile iwarp-rnic lo
    expect_status 0 "--profile in $1"
    has "FRMRPageCount: 128"
}

installed() {
    if ! DESTDIR=$scratch/root cmake --install "$build" --prefix /opt/softndk \
        >"$scratch/install.out" 2>&1; then
        grep -q 'file INSTALL cannot find' "$scratch/install.out" || fail "cannot install"
        say "installed: left out, not all of it is built"
        return
    fi
    LD_LIBRARY_PATH=$(dirname "$(find "$scratch/root" -name 'libsoftndk.so' | head -n 1)")
    export LD_LIBRARY_PATH
    at "$scratch/root/opt/softndk"
    mv "$scratch/root/opt/softndk" "$scratch/moved"
    LD_LIBRARY_PATH=$(dirname "$(find "$scratch/moved" -name 'libsoftndk.so' | head -n 1)")
    at "$scratch/moved"
    rm -r "$scratch/moved/share/softndk"
    info "$scratch/moved/bin/ndkinfo" --profile default lo
    expect_status 0 "default without its file"
    has "FRMRPageCount: 256"
    info "$scratch/moved/bin/ndkinfo" --profile strict lo
    [ "$status" -eq 1 ] || [ -f /usr/local/share/softndk/profiles/strict ] ||
        fail "strict without its file"
    unset LD_LIBRARY_PATH
    say "installed: good"
}

each_with_each() {
    for one in $profiles; do
        for other in $profiles; do
            start_server 127.0.0.1 -V --profile "$one"
            run_client --profile "$other" -V -S 5000 -C 3
            expect_status 0 "client $other of server $one"
            join_server
            expect_status 0 "server $one of client $other"
        done
    done
    say "each with each: good"
}

choosing
refusing
installed
each_with_each
