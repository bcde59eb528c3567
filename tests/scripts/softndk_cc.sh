#!/bin/sh
# SPDX-License-Identifier: MIT
#
# softndk_cc.sh - softndk-cc as its users call it: C and C++, gcc and clang, in one step and in two,
# sanitizers; what it refuses, and what it says then.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}
cc=$build/bin/softndk-cc
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-cc-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
unset CC CXX || true
cd "$scratch"

fail() {
    echo "softndk_cc: FAILED: $*" >&2
    tail -n 10 "$scratch/said" >&2 || true
    exit 1
}

# good WHAT ARGUMENT...: the compiler must take it and say nothing.
good() {
    what=$1
    shift
    "$cc" "$@" >said 2>&1 || fail "$what"
    [ ! -s said ] || fail "$what: says something"
    echo "softndk_cc: $what: good"
}

# shows FILE SYMBOL: whether the shared object has it for others.
shows() { nm -D --defined-only "$1" | grep -q " $2\$" || fail "$1 does not show $2"; }

cat >plain.c <<'END'
#include <NTDDK.h>
#include <NdkPi.h>
DRIVER_INITIALIZE DriverEntry;
static void logf(const char *text) { DbgPrint("%s\n", text); }
unsigned wait(void *unused) { return unused != 0; }
typedef struct { struct { ULONG a; }; ULONG b; } PAIR;
C_ASSERT(sizeof(L"ab") == 6);
NTSTATUS DriverEntry(PDRIVER_OBJECT Driver, PUNICODE_STRING Path)
{
    PAIR pair = {{'tseT'}, 2};
    UNREFERENCED_PARAMETER(Path);
    Driver->DriverUnload = NULL;
    logf("hello");
    return wait(NULL) == pair.a ? STATUS_UNSUCCESSFUL : STATUS_SUCCESS;
}
END
cat >entry.cpp <<'END'
#include <Wdm.h>
#include "NDKPI.H"
extern "C" DRIVER_INITIALIZE DriverEntry;
extern "C" NTSTATUS Helper(void);
struct Counter { LONG count = 0; LONG Next() { return InterlockedIncrement(&count); } };
static_assert(sizeof(WCHAR) == 2 && sizeof(L'a') == 2, "two octets");
extern "C" NTSTATUS DriverEntry(PDRIVER_OBJECT, PUNICODE_STRING)
{
    Counter counter;
    return counter.Next() == 1 ? Helper() : STATUS_UNSUCCESSFUL;
}
END
cat >helper.c <<'END'
#include <wdm.h>
NTSTATUS Helper(void);
NTSTATUS Helper(void) { return STATUS_SUCCESS; }
END
cat >missing.c <<'END'
#include <wdm.h>
DRIVER_INITIALIZE DriverEntry;
VOID ExNobodyHasThis(VOID);
NTSTATUS DriverEntry(PDRIVER_OBJECT d, PUNICODE_STRING p)
{
    UNREFERENCED_PARAMETER(d);
    UNREFERENCED_PARAMETER(p);
    ExNobodyHasThis();
    return STATUS_SUCCESS;
}
END

# Own headers in other letter case than their files, with a backslash, one through another; and one
# whose exact name exists elsewhere, which must stay the one that is meant.
mkdir -p own/src own/Inc/Deep 'own/odd [dir]'
cat >own/src/Driver.c <<'END'
#include "precomp.h"
#include "..\INC\deep\Pool.h"
#include <shared.h>
#include "Exact.h"
DRIVER_INITIALIZE DriverEntry;
NTSTATUS DriverEntry(PDRIVER_OBJECT d, PUNICODE_STRING p)
{
    UNREFERENCED_PARAMETER(d);
    UNREFERENCED_PARAMETER(p);
    return LAM + POOL + BESIDE + SHARED + EXACT == 11111 ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}
C_ASSERT(LAM + POOL + BESIDE + SHARED + EXACT == 11111);
END
printf '#pragma once\r\n#include <Ntddk.h>\r\n#include "LAM.H"\r\n#include "Lam.h"\r\n' \
    >own/src/PreComp.h
echo '#pragma once
enum { LAM = 1 };' >own/src/lam.h
echo '#include "beside.h"
enum { POOL = 10 };' >own/Inc/Deep/pool.h
echo 'enum { BESIDE = 100 };' >own/Inc/Deep/beside.h
echo 'enum { SHARED = 1000 };' >'own/odd [dir]/Shared.H'
echo 'enum { EXACT = 10000 };' >'own/odd [dir]/Exact.h'
echo 'enum { EXACT = 70000 };' >own/src/eXact.h

# Every header of the kit in a spelling that nobody lists, own headers through others in directories
# that nobody names, with backslashes and other letter case: as C and as C++.
mkdir -p mixed/Src mixed/Inc/Deep/Sub
printf '#pragma once\r\n' >mixed/Src/Kit.h
for header in "$source"/include/ndk/*.h "$source"/include/nt/*.h; do
    printf '#include %s\r\n' "$(basename "$header" | awk '{
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            s = s (i % 2 || i % 5 == 4 ? c : toupper(c))
        }
        print (length($0) % 2 ? "<" s ">" : "\"" s "\"")
    }')"
done >>mixed/Src/Kit.h
cat >mixed/Src/Mixed.c <<'END'
#include "KIT.H"
#include "..\inc\DEEP\first.h"
#include <shared.H>
EXTERN_C_START
DRIVER_INITIALIZE DriverEntry;
EXTERN_C_END
EXTERN_C NTSTATUS DriverEntry(PDRIVER_OBJECT Driver, PUNICODE_STRING Path)
{
    NDK_VERSION version = {1, 2};
    UNREFERENCED_PARAMETER(Driver);
    UNREFERENCED_PARAMETER(Path);
    return version.Major + FIRST + SECOND + SHARED == 112 ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}
END
cp mixed/Src/Mixed.c mixed/Src/Plus.cpp
echo '#include "sub/SECOND.h"
enum { FIRST = 1 };' >mixed/Inc/Deep/First.h
echo '#include "third.H"' >mixed/Inc/Deep/Sub/Second.h
echo 'enum { SECOND = 10 };' >mixed/Inc/Deep/Sub/Third.h
echo 'enum { SHARED = 100 };' >mixed/Inc/Shared.h
cat >mixed/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(mixed LANGUAGES C CXX)
add_library(softndk::softndk SHARED IMPORTED)
set_target_properties(softndk::softndk PROPERTIES IMPORTED_LOCATION "$build/lib/libsoftndk.so"
    INTERFACE_INCLUDE_DIRECTORIES
    "$source/include/ndk;$source/include/nt;$source/include/softndk;$build/include/case")
set(softndk_cc "$cc")
include("$source/cmake/softndk-driver.cmake")
foreach(driver Mixed.c Plus.cpp)
    softndk_add_driver(\${driver} Src/\${driver})
    target_include_directories(\${driver} PRIVATE Inc)
    target_compile_options(\${driver} PRIVATE -Wall -Wextra -Werror)
endforeach()
END

# Pointers that do not fit: a warning, as under Windows, whatever the compiler's age.
cat >unfit.c <<'END'
#include <ntddk.h>
typedef void (*CLOSED)(PVOID);
static void done(PVOID context, NTSTATUS status) { (void)context, (void)status; }
CLOSED Unfit(LONG *p);
CLOSED Unfit(LONG *p) { ULONG *q = p; return *q ? done : NULL; }
END

ran=0
for kind in gcc clang; do
    command -v "$kind" >/dev/null 2>&1 || continue
    ran=$((ran + 1))
    good "$kind, C" "--$kind" -g -O2 -Wall -Wextra -Werror plain.c
    shows plain.so DriverEntry
    good "$kind, the driver of tests/nt" "--$kind" -Wall -Wextra -Werror -DDBG=1 -o nt.so \
        "$source/tests/nt/driver.c"
    # In a build with sanitizers, where driver and library must have the same compiler.
    rm -f missing.so
    if "$cc" "--$kind" missing.c >said 2>&1; then
        grep -q '^built_with=.*fsanitize' "$cc" && [ $kind = clang ] ||
            fail "$kind: a name that nobody defines is linked"
    else
        grep -q ExNobodyHasThis said || fail "$kind: the missing name is not told"
    fi
    good "$kind, a step at a time" "--$kind" -c plain.c -o step.o
    good "$kind, its link" "--$kind" step.o -o step.so
    shows step.so DriverEntry
    case $kind in gcc) plus=g++ ;; *) plus=clang++ ;; esac
    command -v "$plus" >/dev/null 2>&1 || continue
    good "$kind, C++ and C" "--$kind" -Wall -Wextra -Werror entry.cpp helper.c -o both.so
    shows both.so DriverEntry
    good "$kind, C++ alone" "--$kind" -c -Wall -Wextra -Werror entry.cpp -o entry.o
    good "$kind, headers in other letter case" "--$kind" -Wall -Wextra -Werror -I 'own/odd [dir]' \
        own/src/Driver.c
    for file in Mixed.c Plus.cpp; do
        good "$kind, all headers in any letter case, $file" "--$kind" -Wall -Wextra -Werror \
            -I mixed/Inc "mixed/Src/$file"
    done
    if command -v cmake >/dev/null 2>&1; then
        cmake -S mixed -B "mixed-$kind" "-DCMAKE_C_COMPILER=$kind" "-DCMAKE_CXX_COMPILER=$plus" \
            >said 2>&1 && cmake --build "mixed-$kind" >said 2>&1 || fail "$kind, CMake, mixed headers"
        ! grep -qi 'warning' said || fail "$kind, CMake, mixed headers: says something"
        shows "mixed-$kind/Mixed.c.so" DriverEntry
        shows "mixed-$kind/Plus.cpp.so" DriverEntry
        echo "softndk_cc: $kind, CMake, all headers in any letter case: good"
    fi
    if [ $kind = gcc ]; then
        "$cc" --gcc -c unfit.c >said 2>&1 || fail "gcc: pointers that do not fit are an error"
        grep -q 'incompatible.pointer' said || fail "gcc: pointers that do not fit are not told"
        ! grep -q 'unrecognized command-line option' said ||
            fail "gcc: beside a warning of the driver it speaks of options that it does not know"
    fi
    good "$kind, C alone" "--$kind" -c helper.c -o helper.o
    good "$kind, objects of both" "--$kind" --cxx entry.o helper.o -o objects.so
    good "$kind, C as C++" "--$kind" -c -x c++ -Wall -Wextra -Werror -o cxx.o plain.c
    good "$kind, another standard" "--$kind" -c -std=gnu++11 entry.cpp -o entry.o
done
[ "$ran" -gt 0 ] || fail "no compiler"
good "CC and CXX" -c helper.c -o helper.o
CC='sh -c false' "$cc" -c helper.c >said 2>&1 && fail "CC is not asked"

# What is looked up from where it stands, also through a link; and the command itself.
ln -s "$cc" link
./link --show -c plain.c >said || fail "--show through a link"
grep -q -- '-fms-extensions -fshort-wchar.*-c plain.c .*-isystem ' said || fail "--show"
"$cc" --help >said || fail "--help"
grep -q '^usage: softndk-cc' said || fail "--help says something else"
"$cc" --version | grep -q '^softndk-cc [0-9]' || fail "--version"
for arguments in "" "plain.c -o"; do
    status=0
    # shellcheck disable=SC2086
    "$cc" $arguments >said 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "'$arguments': exit status $status (need 2)"
    grep -q 'softndk-cc: .*--help' said || fail "'$arguments': no hint"
done
echo "softndk_cc: good"
