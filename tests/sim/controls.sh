#!/bin/bash
# controls.sh - shows that the simulator finds faults: one small change of the library's source each, in
# tests/sim/faults/NAME.sed, must make a game fail within so many seeds.
#
# Usage: controls.sh DIRECTORY [NAME...]    where to build; SIM_CONTROL_SEEDS (2000) seeds at most, from 1 on.
# A fault's first line is `# file: PATH`, its second says what it does, the rest is a script for sed -E. It must change
# that file, and compile. A game that crashes, asserts or hangs has found it. Two are run at a time.
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "${1:?controls.sh: the directory is missing}"
base=$(cd "$1" && pwd)
shift
export base seeds=${SIM_CONTROL_SEEDS:-2000}
unset MAKEFLAGS MFLAGS MAKELEVEL

# build TREE: the simulator of a tree; a fault need not be free of warnings.
build()
{
    make -s -j2 -C "$1" BUILD=build KIND=debug CFLAGS=-O1 WARNINGS=-w build/debug/sim >"$1/build.log" 2>&1
}

# judge NAME TREE: plants it, plays, says in words what came of it.
judge()
{
    local fault=tests/sim/faults/$1.sed file log=$2/run.log
    file=$(sed -n '1s/^# file: *//p' "$fault")
    [ -f "$file" ] || { echo "failed: its first line names no file"; return; }
    cp -a "$base/tree/." "$2"
    sed -E -i -f "$fault" "$2/$file" || { echo "failed: not a script for sed"; return; }
    cmp -s "$file" "$2/$file" && { echo "failed: changes nothing in $file"; return; }
    build "$2" || { echo "failed: does not compile: $(grep -m 1 'error' "$2/build.log")"; return; }
    (ulimit -c 0; timeout 300 "$2/build/debug/sim" --from 1 --count "$seeds" --no-rarities) >"$log" 2>&1
    case $? in
    0) echo "failed: not found within $seeds seeds" ;;
    124) echo "failed: not found within 300 s" ;;
    *) echo "found: $(grep -m 1 '^sim: ' "$log" | sed 's/^sim: //')" ;;
    esac
}

control()
{
    local tree
    tree=$(mktemp -d)
    echo "$1 $(judge "$1" "$tree" 2>&1)"
    rm -rf "$tree"
}

mkdir -p "$base/tree/tests"
rm -rf "$base"/tree/{backoff,link,pool,include,tests/sim}
cp -a Makefile backoff link pool include "$base/tree"
cp -a tests/sim "$base/tree/tests"
build "$base/tree" || { cat "$base/tree/build.log"; exit 1; }
export -f build judge control
[ $# -gt 0 ] || set -- $(basename -s .sed tests/sim/faults/*.sed)
printf '%s\n' "$@" | xargs -P 2 -I NAME bash -c 'control NAME' | tee "$base/verdicts"
found=$(grep -c '^[a-z_]* found' "$base/verdicts")
echo "$# faults, $found found"
[ "$found" = $# ]
