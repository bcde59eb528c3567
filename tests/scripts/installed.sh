#!/bin/sh
# SPDX-License-Identifier: MIT
#
# installed.sh - the installation as its users have it: with DESTDIR and a prefix, moved to another
# place, and from the Debian package. Outside the source, by softndk-cc, pkg-config and CMake.
set -eu

build=${SOFTNDK_BUILD_DIR:?}
source=${SOFTNDK_SOURCE_DIR:?}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-installed.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$scratch"
unset CFLAGS LDFLAGS LD_LIBRARY_PATH PKG_CONFIG_PATH || true

fail() {
    echo "installed: FAILED: $*" >&2
    [ ! -s said ] || tail -n 15 said >&2
    exit 1
}
quiet() { "$@" >said 2>&1 || fail "$*"; }

cp "$source/examples/first.c" program.c
cp "$source/tests/run/faulty.c" driver.c
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(softndk 0.1 REQUIRED)
add_executable(program ../program.c)
target_link_libraries(program PRIVATE softndk::softndk)
softndk_add_driver(driver ../driver.c)
softndk_add_driver(cased Cased.c)
enable_testing()
add_test(NAME driver COMMAND "${softndk_RUN}" $<TARGET_FILE:driver> Mode=clean)
END

echo '#include <nTdDk.H>' >project/own.h
cat >project/Cased.c <<'END'
#include "OWN.H"
DRIVER_INITIALIZE DriverEntry;
NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    UNREFERENCED_PARAMETER(path);
    driver->DriverUnload = NULL;
    return STATUS_SUCCESS;
}
END

# try PREFIX: everything below it, and nothing of the source or the build.
try() {
    prefix=$1
    rm -rf out && mkdir out
    for tool in softndk-run softndk-cc ndkinfo ndkping ndkperf ndkstat ndkstatus ndkconform; do
        "$prefix/bin/$tool" --version >said || fail "$prefix: $tool"
        grep -q "^$tool [0-9]" said || fail "$prefix: $tool --version"
    done
    quiet "$prefix/bin/ndkinfo" --profiles
    grep -q '^strict' said || fail "$prefix: no profiles"
    quiet "$prefix/bin/softndk-cc" -g -Wall -Wextra -Werror driver.c -o out/driver.so
    quiet "$prefix/bin/softndk-run" --idle 0.1 out/driver.so Mode=clean
    quiet "$prefix/bin/softndk-run" --idle 0.1 --profile strict --pend always out/driver.so Mode=clean
    example=$(find "$prefix/share/doc" -type d -path '*/drivers/rw')
    quiet "$prefix/bin/softndk-cc" -g -Wall -Wextra -Werror "$example"/*.c -o out/rw.so
    quiet "$prefix/bin/softndk-run" --idle 0.1 --pend always out/rw.so Rounds=2
    grep -q '^rw: done' said || fail "$prefix: the example rw"
    echo "installed: $prefix: softndk-cc and softndk-run: good"

    if command -v pkg-config >/dev/null 2>&1; then
        PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name softndk.pc)")
        export PKG_CONFIG_PATH
        # shellcheck disable=SC2046
        quiet "${CC:-cc}" program.c $(pkg-config --cflags --libs softndk) -o out/program \
            "-Wl,-rpath,$(pkg-config --variable=libdir softndk)"
        quiet out/program
        grep -q '^NDKPI 2.1' said || fail "$prefix: the program by pkg-config"
        # shellcheck disable=SC2046
        quiet "${CC:-cc}" $(pkg-config --variable=driver_cflags softndk) \
            $(pkg-config --cflags softndk) driver.c -o out/driver2.so \
            $(pkg-config --variable=driver_ldflags softndk) $(pkg-config --libs softndk)
        quiet "$(pkg-config --variable=run softndk)" --idle 0.1 out/driver2.so Mode=clean
        echo "installed: $prefix: pkg-config: good"
        unset PKG_CONFIG_PATH
    fi

    quiet cmake -S project -B out/project "-DCMAKE_PREFIX_PATH=$prefix" \
        -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    quiet cmake --build out/project
    quiet out/project/program
    quiet "$prefix/bin/softndk-run" --idle 0.1 out/project/driver.so Mode=clean
    quiet "$prefix/bin/softndk-run" --idle 0.1 out/project/cased.so
    if grep -qF -e "$source/" -e "$build/" out/project/compile_commands.json; then
        fail "$prefix: the source or the build is asked"
    fi
    echo "installed: $prefix: find_package: good"
    for page in softndk-run ndkping ndkperf ndkstat; do
        [ ! -d "$build/share/man" ] || [ -f "$prefix/share/man/man1/$page.1" ] ||
            [ -f "$prefix/share/man/man1/$page.1.gz" ] || fail "$prefix: no manual page $page"
    done
}

DESTDIR=$scratch/staging quiet cmake --install "$build" --prefix /opt/softndk
try "$scratch/staging/opt/softndk"
if grep -rlF -e "$source/" "$scratch/staging" --include='*.cmake' --include='*.pc' \
    --include='softndk-cc'; then
    fail "these files name the source"
fi
mkdir "$scratch/a place"
mv "$scratch/staging/opt/softndk" "$scratch/moved"
try "$scratch/moved"
# Only its own tools must bear a blank; pkg-config and make do not.
mv "$scratch/moved" "$scratch/a place/softndk"
quiet "$scratch/a place/softndk/bin/softndk-cc" driver.c -o out/blank.so
quiet "$scratch/a place/softndk/bin/softndk-run" --idle 0.1 out/blank.so Mode=clean
rm -rf "$scratch/a place"

if ! command -v dpkg-deb >/dev/null 2>&1 || ! command -v cpack >/dev/null 2>&1; then
    echo "installed: no dpkg-deb or cpack here: the package is not tried"
    exit 0
fi
# Only what is built: cpack would build all tests first.
quiet cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/package" \
    -D "CPACK_CMAKE_GENERATOR=Ninja" -D "CPACK_INSTALL_CMAKE_PROJECTS=$build;softndk;ALL;/"
set -- "$scratch"/package/softndk_*.deb
[ -f "$1" ] || fail "no package"
quiet dpkg-deb -I "$1"
grep -q '^ Depends: .*libc6' said || fail "the package depends on nothing"
quiet dpkg-deb -x "$1" "$scratch/unpacked"
try "$scratch/unpacked/usr"
echo "installed: good"
