#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh [--worktree] [--keep] [--no-limits] [command...] - proves the two commands on a machine
# that has nothing: makes a minimal Debian root with git and make (mmdebstrap), clones this
# repository into it and runs `make demo` and `make check` there, in a chroot. On demand, not in CI.
#
#   --worktree   take the files as they are instead of a clone of the last commit
#   --keep       leave the root where it is, and say where
#   --no-limits  do not fail when a command takes longer than it may on a bare machine
#   command...   make targets to run instead of: demo check
#
# From the environment: BARE_SUITE (bookworm), BARE_MIRROR (a mirror, or a file of sources; default:
# this machine's sources of the distribution), TMPDIR (needs about 2 GiB).
#
# The root takes apt's sources, keyrings and transport options from this machine, so that it works
# behind a mirror or a proxy. Mounts lie in a mount namespace and processes in a PID namespace of
# their own: both are gone when the command ends, however it ends, and then the root is removed.
#
# Ends 0 if every command did, 77 with the reason where this cannot run.
set -eu

source=$(cd "$(dirname "$0")/../.." && pwd)
suite=${BARE_SUITE:-bookworm}
worktree=no
keep=no
limits=yes
while [ $# -gt 0 ]; do
    case $1 in
    --worktree) worktree=yes ;;
    --keep) keep=yes ;;
    --no-limits) limits=no ;;
    -*)
        sed -n '4s/^# //p' "$0" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || set -- demo check

say() { echo "bare: $*"; }
skip() {
    say "skipped: $*"
    exit 77
}

[ "$(id -u)" -eq 0 ] || skip "needs root, for the chroot and its mounts"
for tool in mmdebstrap unshare git; do
    command -v "$tool" >/dev/null 2>&1 ||
        skip "$tool is missing (apt-get install -y --no-install-recommends mmdebstrap git)"
done
unshare --mount --pid --fork true 2>/dev/null || skip "no mount and PID namespaces here"

work=$(mktemp -d "${TMPDIR:-/tmp}/softndk-bare.XXXXXX")
root=$work/root
inside=

cleanup() {
    status=$?
    trap - EXIT
    # The first process of the PID namespace dies with its parent, and all others with it.
    if [ -n "$inside" ]; then
        kill -KILL "$inside" 2>/dev/null || true
        wait "$inside" 2>/dev/null || true
    fi
    # Nothing is mounted below in this namespace; --one-file-system in case somebody did.
    if [ "$keep" = yes ]; then
        say "kept: $root"
    else
        rm -rf --one-file-system "$work"
    fi
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- The root ------------------------------------------------------------------------------------

# The sources of the suite that this machine uses. Others (vendors' repositories) are left out, and
# another suite than ours comes from the mirror that mmdebstrap takes by default.
list_sources() {
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
        /etc/apt/sources.list.d/*.sources; do
        if [ -f "$file" ] && grep -Eq "^[^#]*[[:space:]]$suite([[:space:]]|\$)" "$file"; then
            echo "$file"
        fi
    done
}

# How this machine reaches its mirror: proxies, certificates, checks of dates.
list_transport_options() {
    for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
        if [ -f "$file" ] && grep -q '^[[:space:]]*Acquire' "$file"; then
            echo "$file"
        fi
    done
}

make_root() {
    mirrors=${BARE_MIRROR:-$(list_sources)}
    arguments=
    for file in $(list_transport_options); do
        arguments="$arguments --aptopt=$file"
    done
    for directory in /etc/apt/keyrings /etc/apt/trusted.gpg.d; do
        if [ -n "$(ls -A "$directory" 2>/dev/null)" ]; then
            arguments="$arguments --setup-hook=copy-in[$directory]"
        fi
    done
    # The hook has blanks; the file names of apt have none.
    set -- --quiet --variant=minbase --include=git,make,ca-certificates
    for argument in $arguments; do
        case $argument in
        --setup-hook=*)
            directory=${argument#*\[}
            set -- "$@" "--setup-hook=copy-in ${directory%\]} /etc/apt"
            ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    # shellcheck disable=SC2086 # several files of sources are several arguments
    mmdebstrap "$@" "$suite" "$root" $mirrors || return 1
    # Names resolve as they do here.
    for file in /etc/hosts /etc/resolv.conf; do
        [ ! -f "$file" ] || cp -L "$file" "$root$file"
    done
    # Certificates that this machine trusts beyond Debian's, for a mirror behind a proxy.
    if [ -n "$(ls -A /usr/local/share/ca-certificates 2>/dev/null)" ]; then
        cp -R /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
        chroot "$root" update-ca-certificates >/dev/null 2>&1
    fi
}

copy_repository() {
    if [ "$worktree" = no ]; then
        git -c safe.directory="$source" clone --quiet --no-hardlinks \
            "file://$source" "$root/root/softndk"
        return
    fi
    mkdir "$root/root/softndk"
    # Deleted files are still listed; tar must not stumble over them.
    (
        cd "$source"
        git -c safe.directory="$source" ls-files -z --cached --others --exclude-standard |
            tar --null --ignore-failed-read -T - -cf - 2>/dev/null
    ) | tar -C "$root/root/softndk" --no-same-owner -xf -
}

# ---- The commands --------------------------------------------------------------------------------

# Runs make with a target in the root. A minimal environment, but the proxies of this machine.
# Waited for as a background process, so that a signal reaches us at once.
run_inside() {
    unshare --mount --propagation private --pid --fork --kill-child sh -eu -c '
        root=$1 target=$2
        # A mount point of its own: "ip netns exec" in the root remounts what it sees as /.
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/run"
        exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            ${no_proxy:+no_proxy="$no_proxy"} \
            chroot "$root" sh -c "cd /root/softndk && exec make $target" </dev/null
    ' sh "$root" "$1" &
    inside=$!
    wait "$inside"
}

# Seconds that a command may take on a bare machine, set-up included.
limit_of() {
    case $1 in
    demo) echo 180 ;;
    check) echo 600 ;;
    *) echo 3600 ;;
    esac
}

begin=$(date +%s)
say "making a root of $suite"
make_root || {
    say "mmdebstrap failed"
    exit 1
}
copy_repository
say "the root is there after $(($(date +%s) - begin)) s"

bad=0
report=
for target in "$@"; do
    say "make $target"
    begin=$(date +%s)
    status=0
    run_inside "$target" || status=$?
    inside=
    seconds=$(($(date +%s) - begin))
    limit=$(limit_of "$target")
    verdict=good
    if [ "$status" -ne 0 ]; then
        verdict="FAILED with status $status"
        bad=1
    elif [ "$seconds" -gt "$limit" ]; then
        verdict="too slow"
        [ "$limits" = no ] || bad=1
    fi
    report="$report
bare: make $target: $verdict, $seconds s (may take $limit s)"
done
echo "$report"
exit "$bad"
