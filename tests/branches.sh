#!/bin/bash
# branches.sh - the branches of the core that no test takes, line by line, each with the reason that
# tests/branches.txt gives; and the share of those taken, without what is excluded there.
#
# Exits 1 when fewer than 95 % are taken, when there are more than 20 exclusions, when an entry of the list fits no line
# any more or all its branches are taken, or when a line with a branch not taken has no entry.
#
# Usage: branches.sh DIRECTORY    where tests/cover.sh has left its counts
set -u
cd "$(dirname "$0")/.." || exit 1
built=${1:?branches.sh: the directory is missing}
list=tests/branches.txt
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# FILE, all branches of a line, those taken, the line's number and text; a tab between.
for source in backoff/*.c link/*.c pool/*.c; do
    gcov -b -c -t -o "$built/${source%.c}.o" "$source" 2>/dev/null | awk -v source="$source" '
        function shown() { if (all) print source "\t" all "\t" taken "\t" line "\t" text; all = taken = 0 }
        /^ *-: *0:Source:/ { shown(); ours = index($0, "Source:" source) > 0; next }
        !ours { next }
        /^branch/ { all++; taken += $4 + 0 > 0; next }
        /^(call|function|unconditional|-----)/ { next }
        { shown(); split($0, part, ":"); line = part[2] + 0; text = $0; sub(/^[^:]*:[^:]*: */, "", text) }
        END { shown() }'
done >"$work/lines"

awk -F '\t' '
    FNR == NR {
        if ($0 !~ /^(exclude|rest) /) next
        how = $0; sub(/ .*/, "", how)
        file = $0; sub(/^[a-z]+ /, "", file); sub(/ .*/, "", file)
        text = $0; sub(/^[a-z]+ [^ ]+ /, "", text)
        reason = text; sub(/.* \| /, "", reason); sub(/ \| .*/, "", text)
        n++
        kind[n] = how; place[n] = file; words[n] = text; why[n] = reason
        excluded += how == "exclude"
        next
    }
    function entry(    i) {
        for (i = 1; i <= n; i++)
            if ((place[i] == "*" || place[i] == $1) && index($5, words[i])) { fits[i] = 1; return i }
        return 0
    }
    {
        all_raw += $2; taken_raw += $3
        i = entry()
        if (i && kind[i] == "exclude") next
        all += $2; taken += $3
        if ($2 == $3) next
        explains[i] = 1
        printf "%-20s %4d  %d of %2d not taken  %s\n%28s%s\n", $1, $4, $2 - $3, $2, $5, "", i ? why[i] : "NO REASON IS LISTED"
        bare += !i
    }
    END {
        for (i = 1; i <= n; i++)
            if (!fits[i]) { print "fits no line: " place[i] " " words[i]; stale++ }
            else if (kind[i] == "rest" && !explains[i]) { print "all taken: " place[i] " " words[i]; stale++ }
        printf "%d of %d branches, %.1f %%; with what is excluded by %d rules: %d of %d, %.1f %%\n",
            taken, all, 100 * taken / all, excluded, taken_raw, all_raw, 100 * taken_raw / all_raw
        if (bare) print bare " lines without a listed reason"
        exit taken < 0.95 * all || excluded > 20 || stale || bare
    }' "$list" "$work/lines"
