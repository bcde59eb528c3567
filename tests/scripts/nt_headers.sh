#!/bin/sh
# SPDX-License-Identifier: MIT
#
# nt_headers.sh - each public header by itself and all in any order: C11 to C17, C++11 to C++20, gcc
# and clang, with and without -fms-extensions -fshort-wchar, without a warning (-Wall -Wextra
# -Wpedantic); with the host's headers before and after them; which of those come along; which
# lower-case macros there are. And every spelling. Compilers that are not there are left out.
set -eu

source=${SOFTNDK_SOURCE_DIR:?}
build=${SOFTNDK_BUILD_DIR:?}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softndk-nt-headers.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bad=0
compiled=0

includes="-I$source/include/softndk -I$source/include/ndk -I$source/include/nt -I$build/include/case"
headers=$(cd "$source/include" && for h in ndk/*.h nt/*.h nt/wdm/*.h softndk/*.h; do
    echo "${h#*/}"
done)
spellings=$(cd "$build/include/case" && for h in *; do echo "$h"; done)

wrong() {
    echo "nt_headers: $*"
    bad=$((bad + 1))
}

# Macros that Windows has in lower case; everything else of ours has capitals.
allowed_macros='min max s_addr s_host s_net s_imp s_impno s_lh s6_addr s6_bytes s6_words in_addr6'

check_one() {
    compiler=$1 language=$2 header=$3
    shift 3
    printf '#include <%s>\nextern int something;\n' "$header" >"$scratch/one.$language"
    # shellcheck disable=SC2086 # lists of flags
    if ! "$compiler" "$@" -Wall -Wextra -Wpedantic -Werror -fsyntax-only $includes \
        "$scratch/one.$language" 2>"$scratch/errors"; then
        wrong "$compiler $*: $header"
        head -5 "$scratch/errors"
    fi
    compiled=$((compiled + 1))
}

for compiler in gcc clang g++ clang++; do
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "nt_headers: there is no $compiler, left out"
        continue
    fi
    case $compiler in
    *++) language=cpp standards="c++17 c++11" more="c++14 c++20 gnu++11 gnu++20" ;;
    *) language=c standards="c11 gnu17" more="c17 gnu11 c2x" ;;
    esac
    for header in $headers; do
        check_one "$compiler" "$language" "$header" "-std=${standards%% *}" -fms-extensions \
            -fshort-wchar
    done
    # All of them at once, twice, and in other orders; also between the host's headers.
    for header in $headers; do echo "#include <$header>"; done >"$scratch/order"
    cat "$scratch/order" "$scratch/order" >"$scratch/all.$language"
    sort -r "$scratch/order" >"$scratch/reverse.$language"
    awk '{ print (NR * 7919) % 101, $0 }' "$scratch/order" | sort -n | cut -d' ' -f2- \
        >"$scratch/mixed.$language"
    case $language in
    cpp) printf '#include <%s>\n' cstdio string memory ;;
    *) printf '#include <%s>\n' assert.h ctype.h errno.h pthread.h stdatomic.h ;;
    esac >"$scratch/host"
    printf '#include <%s>\n' string.h stdio.h stdlib.h inttypes.h limits.h time.h unistd.h \
        >>"$scratch/host"
    cat "$scratch/host" "$scratch/order" >"$scratch/before.$language"
    # A host's header that comes after must not meet the macros min and max, as under Windows.
    (echo '#define NOMINMAX' && cat "$scratch/order" "$scratch/host") >"$scratch/after.$language"
    for standard in $standards $more; do
        case " $standards " in *" $standard "*) files="all reverse mixed before after" ;;
        *) files="mixed before" ;; esac
        for file in $files; do
            # shellcheck disable=SC2086
            "$compiler" "-std=$standard" -fms-extensions -fshort-wchar -Wall -Wextra -Wpedantic \
                -Werror -fsyntax-only $includes "$scratch/$file.$language" ||
                wrong "$compiler -std=$standard: all headers together ($file)"
            compiled=$((compiled + 1))
        done
        # shellcheck disable=SC2086 # as a provider's author compiles them
        "$compiler" "-std=$standard" -Wall -Wextra -Werror -fsyntax-only $includes \
            "$scratch/mixed.$language" || wrong "$compiler -std=$standard: without extensions"
    done
done

# Of the host: the freestanding headers, and what stdint.h of the C library needs for itself.
cc=${CC:-cc}
for header in $headers; do
    echo "#include <$header>" >"$scratch/one.c"
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -fms-extensions -fshort-wchar -M $includes "$scratch/one.c" |
        tr -d '\134' | tr ' ' '\n' | grep '^/' |
        grep -v -e "^$source/include/" -e "^$build/include/case/" -e "^$scratch/" \
            -e '/lib/.*/include/std\(arg\|def\|int\|int-gcc\|bool\)\.h$' \
            -e '/lib/.*/include/__std[a-z_]*\.h$' \
            -e '^/usr/include/std\(int\|c-predef\)\.h$' -e '^/usr/include/features[a-z0-9-]*\.h$' \
            -e '^/usr/include/.*/sys/cdefs\.h$' -e '^/usr/include/.*/gnu/stubs[a-z0-9-]*\.h$' \
            -e '^/usr/include/.*/bits/\(libc-header-start\|types\|timesize\|typesizes\|time64\)\.h$' \
            -e '^/usr/include/.*/bits/\(wchar\|wordsize\|long-double\)\.h$' \
            -e '^/usr/include/.*/bits/stdint-[a-z]*\.h$' >"$scratch/foreign" || true
    [ ! -s "$scratch/foreign" ] || wrong "$header brings in $(tr '\n' ' ' <"$scratch/foreign")"
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -fms-extensions -fshort-wchar -dM -E $includes "$scratch/one.c" |
        sed -n 's/^#define \([a-z][A-Za-z0-9_]*\).*/\1/p' | sort >"$scratch/macros"
    printf '#include <%s>\n' stdarg.h stddef.h stdint.h >"$scratch/none.c"
    "$cc" -std=gnu11 -dM -E "$scratch/none.c" |
        sed -n 's/^#define \([a-z][A-Za-z0-9_]*\).*/\1/p' | sort >"$scratch/usual"
    for macro in $(comm -23 "$scratch/macros" "$scratch/usual"); do
        case " $allowed_macros " in
        *" $macro "*) ;;
        *) wrong "$header defines $macro" ;;
        esac
    done
done

# Every spelling leads to its header.
for spelling in $spellings; do
    printf '#include <%s>\n#include "%s"\n' "$spelling" "$spelling"
done >"$scratch/spellings.c"
# shellcheck disable=SC2086
"$cc" -std=gnu11 -fms-extensions -fshort-wchar -Wall -Wextra -Werror -fsyntax-only $includes \
    "$scratch/spellings.c" || wrong "the spellings"
for header in Wdm.h WDM.H NTDDK.h NtDdk.h Wdmsec.h NDKPI.h WskNdk.h Ws2ipdef.h; do
    [ -f "$build/include/case/$header" ] || wrong "there is no $header"
done

echo "nt_headers: $compiled compilations, $(echo "$spellings" | wc -l) spellings, $bad wrong"
[ "$bad" -eq 0 ]
