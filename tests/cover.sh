#!/bin/bash
# cover.sh - runs the suites on a library counted by gcov, and prints a table: a line a file of the core, the lines and
# branches that the tests reached.
#
# Usage: cover.sh DIRECTORY SUITE...    where the binaries and their counts are
set -u
cd "$(dirname "$0")/.." || exit 1
built=${1:?cover.sh: the directory is missing}
shift
status=0
find "$built" -name '*.gcda' -delete
for suite; do
    "$built/$suite" || status=1
done

# gcov says of each file: File 'x.c', Lines executed:97.10% of 207, Branches executed:..., Taken at least once:...
for source in backoff/*.c link/*.c pool/*.c; do
    gcov -n -b -r -o "$built/${source%.c}.o" "$source" 2>/dev/null |
        awk -v source="$source" '/^File/ { ours = index($0, "\047" source "\047") } ours'
done | tr ':' ' ' | awk '
    function percent(part, all) { return all ? sprintf("%6.1f %% of %5d", 100 * part / all, all) : "     none         " }
    /^File/ { file = $2; gsub("\047", "", file); order[++n] = file }
    /^Lines executed/ { all_lines[file] = $5; lines[file] = $3 / 100 * $5 }
    /^Taken at least once/ { all_branches[file] = $7; branches[file] = $5 / 100 * $7 }
    END {
        printf "%-28s %-20s %s\n", "file", "lines", "branches taken"
        for (i = 1; i <= n; i++) {
            f = order[i]
            printf "%-28s %s   %s\n", f, percent(lines[f], all_lines[f]), percent(branches[f], all_branches[f])
            l += lines[f]; al += all_lines[f]; b += branches[f]; ab += all_branches[f]
        }
        printf "%-28s %s   %s\n", "all", percent(l, al), percent(b, ab)
    }'
exit $status
