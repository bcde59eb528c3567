#!/bin/sh
# SPDX-License-Identifier: MIT
#
# format.sh [--check] [file...] - lays out the C and C++ files of the repository, or the files
# named, as .clang-format says; --check only tells which are not, and ends 1 if any.
# CLANG_FORMAT names another clang-format; versions differ in details, 14 is the one that counts.
set -eu

cd "$(dirname "$0")/.."
tool=${CLANG_FORMAT:-clang-format}
if ! command -v "$tool" >/dev/null 2>&1; then
    echo "format: $tool is not installed" \
        "(apt-get install -y --no-install-recommends clang-format)" >&2
    exit 1
fi

mode=-i
if [ "${1:-}" = --check ]; then
    mode=--check
    shift
fi
if [ $# -eq 0 ]; then
    # Known to git, or new and not ignored; our names hold no spaces. A deleted file is skipped.
    # shellcheck disable=SC2046
    set -- $(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cpp')
fi

bad=0
for file in "$@"; do
    [ -f "$file" ] || continue
    if [ "$mode" = -i ]; then
        "$tool" -i --style=file "$file"
    elif ! "$tool" --style=file "$file" | cmp -s - "$file"; then
        echo "format: $file"
        bad=$((bad + 1))
    fi
done
if [ "$bad" -ne 0 ]; then
    echo "format: $bad files differ; scripts/format.sh lays them out"
    exit 1
fi
