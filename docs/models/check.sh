#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks the models beside this file with spin: each must pass, completely and
# with every statement of it reached, and each deliberate fault must be found.
#
# usage: check.sh [model ...]		(direction, cq, close, srq; all when none is named)
# environment: SPIN, CC

SPIN=${SPIN:-spin}
CC=${CC:-cc}
here=$(cd "$(dirname "$0")" && pwd) || exit 1
megabytes=2000
depth=100000

command -v "$SPIN" >/dev/null 2>&1 || { echo "skipped: no spin here"; exit 77; }
command -v "$CC" >/dev/null 2>&1 || { echo "skipped: no C compiler ($CC) here"; exit 77; }

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' 0
trap 'exit 1' 1 2 15
cd "$tmp" || exit 1
failed=0

# build MODEL CFLAGS [spin's -D...]: makes ./pan from a copy of the model, so
# that the names in spin's output carry no directory.
build()
{
	model=$1; cflags=$2; shift 2
	rm -f pan pan.* ./*.trail
	cp "$here/$model.pml" . &&
	"$SPIN" -a "$@" "$model.pml" >spin.out 2>&1 && ! grep -i error spin.out &&
	"$CC" $cflags -w -DMEMLIM=$megabytes -o pan pan.c && return 0
	cat spin.out
	return 1
}

# report VERDICT WHAT: one line, with the numbers of the last run
report()
{
	states=$(awk '/states, stored/ { print $1; exit }' out)
	seconds=$(awk '/elapsed time/ { print $4; exit }' out)
	printf '%-7s %-42s %9s states %7s s\n' "$1" "$2" "${states:-?}" "${seconds:-?}"
}

# complete: the last run found nothing and left nothing out
complete()
{
	grep -q 'errors: 0$' out &&
	! grep -Eiq 'not completed|depth too small|out of memory|memory limit|truncated|aborted' out
}

# unreached: statements of the model that no process reaches. An inline stands
# in several processes, with other arguments, and not in all of them is every
# case possible; it is enough that one of them reaches the statement. Indexes
# and numbers are dropped for the comparison. Servers do not reach -end-.
unreached()
{
	./pan -d >table 2>/dev/null
	awk '
		FNR == 1 { file++ }
		file == 1 && /^unreached in/ { proc = $NF; next }
		file == 1 && /\.pml:[0-9]+, state [0-9]+, "/ {
			state = $3; sub(/,.*/, "", state)
			missed[proc, state] = 1
			next
		}
		file == 2 && /^(proctype|init|claim)/ { proc = $NF; next }
		file == 2 && /^\tstate/ {
			if (/-end-/ || !match($0, /\.pml:[0-9]+ =>/)) next
			line = substr($0, RSTART + 5)
			colon = index(line, " ")
			text = substr(line, colon); line = substr(line, 1, colon)
			gsub(/\[[^]]*\]/, "[]", text); gsub(/[0-9()]|<<d|<<o|<<c/, "", text)
			line = line text
			if ((proc, $2) in missed) suspect[line] = $0
			else reached[line] = 1
		}
		END { for (l in suspect) if (!(l in reached)) print suspect[l] }
	' out table
}

# holds WHAT MODEL [-D...]: the model has no error
holds()
{
	what=$1; shift
	model=$1; shift
	if ! build "$model" '-O2 -DSAFETY' "$@"; then
		echo "FAILED  $what: does not build"; failed=1; return
	fi
	./pan -m$depth -w24 >out 2>&1
	if ! complete; then
		report FAILED "$what"; grep -E '^pan:|rror' out; failed=1; return
	fi
	lines=$(unreached)
	if [ -n "$lines" ] && [ $# -eq 0 ]; then
		report FAILED "$what"; echo "never reached:"; echo "$lines"; failed=1; return
	fi
	report ok "$what"
}

# ends WHAT MODEL [-D...]: no execution goes on for ever (no progress label
# stands in the model, so that every cycle would be an error)
ends()
{
	what=$1; shift
	model=$1; shift
	if ! build "$model" '-O0 -DNP' "$@"; then
		echo "FAILED  $what: does not build"; failed=1; return
	fi
	./pan -l -m$depth -w24 >out 2>&1
	if complete; then
		report ok "$what"
	else
		report FAILED "$what"; grep -E '^pan:|rror' out; failed=1
	fi
}

# faults MODEL: every BUG_ the model knows is found
faults()
{
	for bug in $(grep -Eo 'BUG_[A-Z_]+' "$here/$1.pml" | sort -u); do
		what="$1 $bug"
		if ! build "$1" '-O0 -DSAFETY' "-D$bug"; then
			echo "FAILED  $what: does not build"; failed=1; continue
		fi
		./pan -m$depth -w20 >out 2>&1
		if grep -Eq '^pan:1: (assertion violated|invalid end state)' out &&
		   grep -q 'errors: 1$' out; then
			report found "$what"
		else
			report MISSED "$what"; failed=1
		fi
	done
}

for model in ${*:-direction cq close srq}; do
	case $model in
	direction)
		holds 'direction' direction
		holds 'direction, a poller' direction -DLEAVING -DNO_CLOSE
		ends 'direction, no endless run' direction -DNO_CLOSE ;;
	cq)
		holds 'cq' cq
		holds 'cq, moderated' cq -DMODERATED -DRESIZES=0
		ends 'cq, no endless run' cq -DPUTS=2 ;;
	close)
		holds 'close' close
		ends 'close, no endless run' close -DSMALL ;;
	srq)
		holds 'srq' srq
		holds 'srq, three connections' srq -DCONNS=3 -DPOSTS=2 -DMESSAGES=1
		ends 'srq, no endless run' srq -DPOSTS=2 ;;
	*)
		echo "no such model: $model"; exit 2 ;;
	esac
	faults "$model"
done
exit $failed
