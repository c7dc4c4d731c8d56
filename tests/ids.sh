#!/bin/bash
# ids.sh - runs the reference behaviours of tests/conformance/ids.txt, a line each: id, test, passed or failed.
#
# Usage: ids.sh BINARY    the conformance binary. An id's tests are those whose names begin with the id and a _.
# Exit status 0 only if each id has a test, and all of its tests passed.
set -u
binary=${1:?ids.sh: the conformance binary is missing}
tests=$(dirname "$0")
ids=$("$tests/ids_list.sh")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086
"$binary" --timeout 60 --tap="$work/tap" --filter "*/@($(echo $ids | tr ' ' '|'))_*" >"$work/log" 2>&1
status=$?

awk -f "$tests/verdicts.awk" "$work/tap" | awk -v ids="$ids" '
    !n[$1]++ { first[$1] = $2 }
    $3 == "failed" { red[$1] = 1 }
    END {
        count = split(ids, id_of)
        for (i = 1; i <= count; i++) {
            id = id_of[i]
            verdict = !n[id] ? "failed: no test" : red[id] ? "failed" : "passed"
            printf "%-4s %-76s %s\n", id, first[id] (n[id] > 1 ? " and " n[id] - 1 " more" : ""), verdict
            if (verdict == "passed")
                passed++
        }
        printf "%d ids, %d passed\n", count, passed
        exit passed != count || count == 0
    }' && [ $status = 0 ] && exit 0
cat "$work/log"
exit 1
