#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setup.sh [build|test|fuzz|interop|bench] - finds out what this machine lacks, and installs it.
#
#   build  what `make build` and `make demo` need
#   test   that, and what `make check` needs (default)
#   fuzz   that, and what `make fuzz` needs
#   interop  what `make check` needs, and `make check-interop`
#   bench    what `make check` needs, and what `make bench` measures against
#
# What is missing is named. Then root gets it through apt, unless SOFTNDK_INSTALL=0; everyone else
# gets the line to run. Ends 0 unless something required is missing in the end: what is optional
# only leaves features out or tests skipped, and says so.
set -eu

purpose=${1:-test}
case $purpose in
build | test | fuzz | interop | bench) ;;
*)
    echo "usage: $0 [build|test|fuzz|interop|bench]" >&2
    exit 2
    ;;
esac

scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-setup.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "setup: $*"; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---- What is there -------------------------------------------------------------------------------

# The compiler that CMake will take.
compiler=
find_compiler() {
    for candidate in ${CC:-} cc gcc clang; do
        if have "$candidate"; then
            compiler=$candidate
            break
        fi
    done
}

# Compiles and links, so that a compiler without a C library counts as missing.
check_compiler() {
    [ -n "$compiler" ] || return 1
    echo 'int main(void) { return 0; }' >"$scratch/probe.c"
    "$compiler" "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null
}

check_cxx() { [ -n "${CXX:-}" ] || have c++ || have g++ || have clang++; }

# check_header <header> [<header that must come before> ...]
check_header() {
    [ -n "$compiler" ] || return 1
    wanted=$1
    shift
    for header in "$@" "$wanted"; do
        echo "#include <$header>"
    done >"$scratch/probe.c"
    "$compiler" -fsyntax-only "$scratch/probe.c" 2>/dev/null
}

check_cmake() {
    have cmake || return 1
    version=$(cmake --version | sed -n 's/^cmake version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    # shellcheck disable=SC2086 # two words on purpose
    set -- $version
    [ $# -eq 2 ] && { [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 22 ]; }; }
}

check_python() {
    have python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
}

# The compiler of the fuzz targets, with libFuzzer, which is a package of its own.
check_fuzzer() {
    have "${CC_FUZZ:-clang}" || return 1
    echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n) { return 0; }' \
        >"$scratch/probe.c"
    "${CC_FUZZ:-clang}" -fsanitize=fuzzer,address "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null
}

required=
optional=

# need <package> <what it is for> <check...>; want: the same, but optional.
need() {
    package=$1 purpose_text=$2
    shift 2
    if ! "$@"; then
        say "missing, required: $package ($purpose_text)"
        required="$required $package"
    fi
}
want() {
    package=$1 purpose_text=$2
    shift 2
    if ! "$@"; then
        say "missing, optional: $package ($purpose_text)"
        optional="$optional $package"
    fi
}

examine() {
    required=
    optional=
    find_compiler
    if ! have ninja; then
        need make "runs the build" have make
    fi
    need cmake "configures the build, 3.22 or later" check_cmake
    need gcc "compiles" check_compiler
    # gcc only recommends it.
    need libc6-dev "headers of the C library" check_compiler
    need pkg-config "finds libraries" have pkg-config
    want libisal-dev "faster CRC32C; built without it otherwise" check_header isa-l.h
    want systemtap-sdt-dev "probes for bpftrace, perf and gdb; built without them otherwise" \
        check_header sys/sdt.h
    want scdoc "makes the manual pages; installed without them otherwise" have scdoc
    if [ "$purpose" != build ]; then
        need libcmocka-dev "unit tests" \
            check_header cmocka.h stdarg.h stddef.h stdint.h setjmp.h
        need python3 "script tests and make red, 3.8 or later" check_python
        want g++ "the C++ test of the headers; skipped otherwise" check_cxx
        want spin "checks docs/models; skipped otherwise" have spin
        want tshark "checks what is on the wire; skipped otherwise" have tshark
        want iproute2 "tests between network namespaces; skipped otherwise" have ip
    fi
    if [ "$purpose" = fuzz ]; then
        want clang "builds the fuzz targets; skipped otherwise" have "${CC_FUZZ:-clang}"
        want libclang-rt-dev "libFuzzer; skipped otherwise" check_fuzzer
    fi
    if [ "$purpose" = interop ]; then
        want qemu-system-x86 "boots the guest of tests/interop; skipped otherwise" \
            have qemu-system-x86_64
        # The guest's driver is built with the makefiles of the kernel.
        want make "builds the driver of that guest; skipped otherwise" have make
        want xz-utils "unpacks the packages of that guest; skipped otherwise" have xz
    fi
    if [ "$purpose" = bench ]; then
        want libfabric-dev "builds bench/fabric, a peer; left out otherwise" \
            check_header rdma/fabric.h
        want libfabric-bin "fi_pingpong, a peer; left out otherwise" have fi_pingpong
        want ucx-utils "ucx_perftest, a peer; left out otherwise" have ucx_perftest
    fi
}

# ---- Installing ----------------------------------------------------------------------------------

export DEBIAN_FRONTEND=noninteractive
export NEEDRESTART_SUSPEND=1

apt_get() {
    apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 -o Acquire::http::Timeout=60 \
        -o Acquire::https::Timeout=60 "$@" >"$scratch/apt.log" 2>&1
}

apt_update() {
    say "apt-get update"
    apt_get update || {
        say "apt-get update failed:"
        tail -n 5 "$scratch/apt.log"
    }
    updated=yes
}

# Whether apt knows of every package named.
apt_knows() {
    for package in "$@"; do
        LC_ALL=C apt-cache policy "$package" 2>/dev/null |
            grep 'Candidate:' | grep -qv '(none)' || return 1
    done
}

# Tried again once after an update: the lists may be older than the mirror.
apt_install() {
    say "apt-get install -y --no-install-recommends $*"
    apt_get install --no-install-recommends "$@" && return 0
    if [ "$updated" = no ]; then
        apt_update
        apt_get install --no-install-recommends "$@" && return 0
    fi
    return 1
}

install_missing() {
    updated=no
    # shellcheck disable=SC2086 # lists of packages
    apt_knows $required $optional || apt_update

    # tshark asks whether everyone may capture; the answer here is no, and no question.
    case " $optional " in
    *" tshark "*)
        if have debconf-set-selections; then
            echo 'wireshark-common wireshark-common/install-setuid boolean false' |
                debconf-set-selections
        fi
        ;;
    esac

    # shellcheck disable=SC2086
    apt_install $required $optional && return 0
    tail -n 5 "$scratch/apt.log"
    # One that cannot be had must not take the others along.
    if [ -n "$required" ]; then
        # shellcheck disable=SC2086
        apt_install $required || {
            tail -n 20 "$scratch/apt.log"
            return 1
        }
    fi
    for package in $optional; do
        apt_install "$package" || say "could not install $package; going on without it"
    done
}

# ---- Main ----------------------------------------------------------------------------------------

examine
if [ -z "$required$optional" ]; then
    say "everything to $purpose is here"
    exit 0
fi

line="apt-get install -y --no-install-recommends$required$optional"
if ! have apt-get; then
    say "no apt-get here: install what these Debian packages hold:$required$optional"
elif [ "${SOFTNDK_INSTALL:-1}" = 0 ]; then
    say "SOFTNDK_INSTALL=0, so nothing is installed. To install it:"
    say "    $line"
elif [ "$(id -u)" -ne 0 ]; then
    say "not root, so nothing is installed. To install it:"
    say "    sudo $line"
else
    install_missing || say "apt-get failed"
    say "looking again"
    examine
fi

if [ -n "$required" ]; then
    say "cannot go on without:$required"
    exit 1
fi
say "everything required to $purpose is here"
