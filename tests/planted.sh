#!/bin/bash
# planted.sh - shows that a program finds faults: one small change of the library's source each, in
# tests/planted/PROGRAM/NAME.sed, must make it fail.
#
# Usage: planted.sh DIRECTORY PROGRAM [NAME...]    where to build; sim, sim_seam or faults
# PLANTED_SEEDS (2000): so many games of sim at most, from seed 1 on.
# A fault's first line is `# file: PATH`, its second says what it does, the rest is a script for sed -E; a line
# `# games: ARGUMENT...` is for games of another kind. It must change that file, and compile. A program that crashes, asserts or hangs has found it. Two are tried at a time.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p "${1:?planted.sh: the directory is missing}"
base=$(cd "$1" && pwd)
program=${2:?planted.sh: the program is missing}
shift 2
export base program seeds=${PLANTED_SEEDS:-2000}
unset MAKEFLAGS MFLAGS MAKELEVEL

# build TREE: the program of a tree; a fault need not be free of warnings.
build()
{
    make -s -j2 -C "$1" BUILD=build KIND=debug CFLAGS=-O1 WARNINGS=-w "build/debug/$program" >"$1/build.log" 2>&1
}

# run TREE JOBS [ARGUMENT...]: in at most five minutes, or one where it takes seconds.
run()
(
    ulimit -c 0
    local arguments=() seconds=60
    [ "$program" != sim ] || arguments=(--from 1 --count "$seeds" --jobs "$2" --no-rarities "${@:3}") seconds=300
    timeout "$seconds" "$1/build/debug/$program" "${arguments[@]}"
)

# judge NAME TREE: plants it, runs the program, says in words what came of it.
judge()
{
    local fault=tests/planted/$program/$1.sed file log=$2/run.log
    file=$(sed -n '1s/^# file: *//p' "$fault")
    [ -f "$file" ] || { echo "failed: its first line names no file"; return; }
    cp -a "$base/tree/." "$2"
    sed -E -i -f "$fault" "$2/$file" || { echo "failed: not a script for sed"; return; }
    cmp -s "$file" "$2/$file" && { echo "failed: changes nothing in $file"; return; }
    build "$2" || { echo "failed: does not compile: $(grep -m 1 'error' "$2/build.log")"; return; }
    # shellcheck disable=SC2046 # arguments without spaces
    run "$2" 1 $(sed -n 's/^# games: *//p' "$fault") >"$log" 2>&1
    case $? in
    0) echo "failed: not found" ;;
    *) echo "found: $(grep -m 1 -E '^sim: |^\[FAIL\]|FAILED|Assertion' "$log" | cut -c -110)" ;;
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
rm -rf "$base"/tree/{backoff,link,pool,include,tests/fakes,tests/faults,tests/sim}
cp -a Makefile backoff link pool include "$base/tree"
cp -a tests/fakes tests/faults tests/sim "$base/tree/tests"
build "$base/tree" || { cat "$base/tree/build.log"; exit 1; }
run "$base/tree" 2 >"$base/tree/run.log" 2>&1 || { tail "$base/tree/run.log"; echo "$program fails without a fault"; exit 1; }
export -f build run judge control
# shellcheck disable=SC2046 # names without spaces
[ $# -gt 0 ] || set -- $(basename -s .sed "tests/planted/$program"/*.sed)
printf '%s\n' "$@" | xargs -P 2 -I NAME bash -c 'control NAME' | tee "$base/verdicts"
found=$(grep -c '^[a-z0-9_]* found' "$base/verdicts")
echo "$# faults, $found found"
[ "$found" = $# ]
