#!/bin/bash
# verify-ids.sh - shows that the test of each reference behaviour can fail, and for its own reason: one small change of
# the library's source an id, in tests/conformance/mutants/ID.sed, must turn a test of it red, and few others.
#
# Usage: verify-ids.sh DIRECTORY    where to build; what is there is used again.
# A mutant's first line is `# file: PATH`, the rest a script for sed -E. It must change that file, and compile. A test
# that crashes, asserts or hangs is red. Two mutants are run at a time.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p "${1:?verify-ids.sh: the directory is missing}"
base=$(cd "$1" && pwd)
export most_others=5 base
unset MAKEFLAGS MFLAGS MAKELEVEL

# build TREE: the conformance binary of a tree, quick to make; a mutant need not be free of warnings.
build()
{
    make -s -j2 -C "$1" BUILD=build KIND=debug CFLAGS=-O0 WARNINGS=-w build/debug/conformance >"$1/build.log" 2>&1
}

# run TREE: a line each test: id, name, passed or failed.
run()
(
    ulimit -c 0
    timeout 120 "$1/build/debug/conformance" -j1 --timeout 10 --tap="$1/tap" --filter 'conformance/*' >"$1/run.log" 2>&1
    awk -f tests/verdicts.awk "$1/tap"
)

# judge ID VERDICTS: whether a change had the effect it must have, in words.
judge()
{
    local red others
    red=$(awk '$3 == "failed" { print $1 }' <<<"$2" | sort -u)
    others=$(grep -vx "$1" <<<"$red" | paste -sd ' ')
    if [ -z "$2" ]; then
        echo "failed: nothing ran"
    elif ! grep -qx "$1" <<<"$red"; then
        echo "failed: stays green${others:+, but red: $others}"
    elif [ "$(wc -w <<<"$others")" -gt "$most_others" ]; then
        echo "failed: turns more than $most_others others red: $others"
    else
        echo "passed: red${others:+, with $others}"
    fi
}

# mutate ID TREE: makes the change in the tree and tries it.
mutate()
{
    local mutant=tests/conformance/mutants/$1.sed file
    [ -f "$mutant" ] || { echo "failed: there is no $mutant"; return; }
    file=$(sed -n '1s/^# file: *//p' "$mutant")
    [ -f "$file" ] || { echo "failed: its first line names no file"; return; }
    cp -a "$base/." "$2"
    sed -E -i -f "$mutant" "$2/$file" || { echo "failed: not a script for sed"; return; }
    cmp -s "$file" "$2/$file" && { echo "failed: changes nothing in $file"; return; }
    build "$2" || { echo "failed: does not compile: $(grep -m 1 'error' "$2/build.log")"; return; }
    judge "$1" "$(run "$2")"
}

# verify ID: one line of verdict.
verify()
{
    local tree
    tree=$(mktemp -d)
    echo "$1 $(mutate "$1" "$tree" 2>&1)"
    rm -rf "$tree"
}

rm -rf "$base"/{backoff,link,pool,include,tests}
mkdir -p "$base/tests"
cp -a Makefile backoff link pool include "$base"
cp -a tests/conformance tests/fakes "$base/tests"
build "$base" || { cat "$base/build.log"; exit 1; }
green=$(run "$base")
if [ -z "$green" ] || grep ' failed$' <<<"$green"; then
    echo "verify-ids.sh: not green to begin with"
    exit 1
fi

export -f build run judge mutate verify
ids=$(tests/ids_list.sh)
xargs -P 2 -I ID bash -c 'verify ID' <<<"$ids" | tee "$base/verdicts"
failed=$(grep -vc '^[A-Z0-9]* passed' "$base/verdicts")
echo "$(wc -w <<<"$ids") ids, $failed without a change that shows them"
[ "$failed" = 0 ] && [ "$(wc -l <"$base/verdicts")" = "$(wc -w <<<"$ids")" ] && [ -n "$ids" ]
