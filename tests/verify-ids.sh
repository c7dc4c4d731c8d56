#!/bin/bash
# verify-ids.sh - shows that the tests of what is promised can fail, and for their own reason: small changes of the
# library's source, each of which must turn red the tests of the ids that it is for.
#
# Usage: verify-ids.sh DIRECTORY [reference|cases|all] [K/N]
# DIRECTORY: where to build; what is there is used again. K/N: of the changes for cases only the K-th of N shares, K
# from 0, for a run that is to be short; without it each case must have a change.
#
# A change is a file of tests/conformance/mutants/: ID.sed for a reference behaviour, which may turn few others red, and
# cases/NAME.sed for cases, whose tests alone are run. It begins with `# file: PATH...`, what it changes, and for cases
# `# red: ID...`, all of which must turn red; the rest is a script for sed -E. It must change each of its files, and
# compile. A test that crashes, asserts or hangs is red. Two are tried at a time.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p "${1:?verify-ids.sh: the directory is missing}"
base=$(cd "$1" && pwd)
which=${2:-all}
share=${3:-0/1}
export most_others=5 base
unset MAKEFLAGS MFLAGS MAKELEVEL

# build TREE: the conformance binary of a tree, quick to make; a mutant need not be free of warnings.
build()
{
    make -s -j2 -C "$1" BUILD=build KIND=debug CFLAGS=-O0 WARNINGS=-w build/debug/conformance >"$1/build.log" 2>&1
}

# run TREE TESTS: a line each test: id, name, passed or failed.
run()
(
    ulimit -c 0
    timeout 300 "$1/build/debug/conformance" -j1 --tap="$1/tap" --filter "$2" >"$1/run.log" 2>&1
    awk -f tests/verdicts.awk "$1/tap"
)

# named MUTANT WORD: what its line `# WORD: ...` says.
named()
{
    sed -n "s/^# $2: *//p" "$1"
}

# judge VERDICTS ID MOST: in words, whether the id's tests are red, and at most so many others.
judge()
{
    local red others
    red=$(awk '$3 == "failed" { print $1 }' <<<"$1" | sort -u)
    others=$(grep -vx "$2" <<<"$red" | paste -sd ' ')
    if [ -z "$1" ]; then
        echo "failed: nothing ran"
    elif ! grep -qx "$2" <<<"$red"; then
        echo "failed: stays green${others:+, but red: $others}"
    elif [ "$(wc -w <<<"$others")" -gt "$3" ]; then
        echo "failed: turns more than $3 others red: $others"
    else
        echo "passed: red${others:+, with $others}"
    fi
}

# change MUTANT TREE: makes it in the tree, and builds that; says what is wrong.
change()
{
    local file files
    files=$(named "$1" file)
    [ -n "$files" ] || { echo "failed: it names no file"; return 1; }
    cp -a "$base/." "$2"
    for file in $files; do
        [ -f "$file" ] || { echo "failed: there is no $file"; return 1; }
        sed -E -i -f "$1" "$2/$file" || { echo "failed: not a script for sed"; return 1; }
        cmp -s "$file" "$2/$file" && { echo "failed: changes nothing in $file"; return 1; }
    done
    build "$2" || { echo "failed: does not compile: $(grep -m 1 'error' "$2/build.log")"; return 1; }
}

# verify MUTANT: a line of verdict each id that it is for.
verify()
{
    local ids tests='conformance/*' most=$most_others tree wrong verdicts
    ids=$(named "$1" red)
    if [ -n "$ids" ]; then
        tests="cases/@(${ids// /|})_*"
        most=1000
    else
        ids=$(basename "$1" .sed)
    fi
    tree=$(mktemp -d)
    wrong=$(change "$1" "$tree") && verdicts=$(run "$tree" "$tests")
    for id in $ids; do
        echo "$id $(basename "$1" .sed) ${wrong:-$(judge "$verdicts" "$id" "$most")}"
    done
    rm -rf "$tree"
}

# mutants: those that are to be tried.
mutants()
{
    [ "$which" = cases ] || ls tests/conformance/mutants/*.sed
    [ "$which" = reference ] ||
        printf '%s\n' tests/conformance/mutants/cases/*.sed | awk -v k="${share%/*}" -v n="${share#*/}" 'NR % n == k'
}

rm -rf "$base"/{backoff,link,pool,include,tests}
mkdir -p "$base/tests"
cp -a Makefile backoff link pool include "$base"
cp -a tests/conformance tests/fakes "$base/tests"
build "$base" || { cat "$base/build.log"; exit 1; }
green=$(run "$base" '@(conformance|cases)/*')
if [ -z "$green" ] || grep ' failed$' <<<"$green"; then
    echo "verify-ids.sh: not green to begin with"
    exit 1
fi

export -f build run named judge change verify
mutants | xargs -P 2 -I MUTANT bash -c 'verify MUTANT' | tee "$base/verdicts"
# Each id needs a change; in a share each change needs its ids.
if [ "$share" = 0/1 ]; then
    wanted=$(tests/ids_list.sh "$which")
else
    wanted=$(cut -d' ' -f1 "$base/verdicts" | sort -u)
fi
failed=$(grep -c ' failed: ' "$base/verdicts")
shown=$(awk '$3 == "passed:" { print $1 }' "$base/verdicts" | sort -u)
lacking=$(comm -13 <(echo "$shown") <(sort <<<"$wanted") | paste -sd ' ')
echo "$(mutants | wc -l) changes for $(wc -w <<<"$wanted") ids; $failed verdicts failed"
[ -z "$lacking" ] || echo "without a change that shows them: $lacking"
[ "$failed" = 0 ] && [ -z "$lacking" ] && [ -n "$wanted" ]
