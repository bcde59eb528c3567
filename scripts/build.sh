#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build.sh <build directory> <target or all> [cmake -D arguments]
#
# Configures and builds. A fresh build directory uses ninja where it is installed, make otherwise.
# From the environment: JOBS (default: the processors here), SOFTNDK_WERROR=ON, CMAKE_ARGS.
set -eu

directory=$1 target=$2
shift 2
cd "$(dirname "$0")/.."

# Flags of a make above us are not meant for the make below.
unset MAKEFLAGS MFLAGS MAKELEVEL || true

generator=
if [ ! -f "$directory/CMakeCache.txt" ] && command -v ninja >/dev/null 2>&1; then
    generator=Ninja
fi

# shellcheck disable=SC2086 # CMAKE_ARGS is a list of arguments
cmake -S . -B "$directory" ${generator:+-G "$generator"} \
    "-DSOFTNDK_WERROR=${SOFTNDK_WERROR:-OFF}" "$@" ${CMAKE_ARGS:-}
cmake --build "$directory" --target "$target" --parallel "${JOBS:-$(nproc)}"
