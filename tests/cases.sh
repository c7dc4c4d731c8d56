#!/bin/bash
# cases.sh - runs the tests of all that tests/conformance/ids.txt promises, and prints a line each: id, test, passed or
# failed; then what is not promised, with its kind.
#
# Usage: cases.sh BINARY [CASES]   the conformance binary; CASES: the list of cases, whose rows begin with `| ID |`.
# Exit status 0 only if each id of ids.txt has a test and all of its tests passed; each test of a case has its id there;
# no id is in both lists; what is left to lbproxy is named in docs/http.md; and no case is missing from both lists.
set -u
binary=${1:?cases.sh: the conformance binary is missing}
list=${2:-}
tests=$(dirname "$0")
rows=307 # of the list of cases, where it is not at hand
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

of_cases='^(T|[VX][A-Z])[0-9]+$'
kinds='^(names|tls|http2|framed|preconnect|outliers|health|proxy|offered|design):$'
"$tests/ids_list.sh" all >"$work/ids"
awk '/^[A-Z]+[0-9]+ / { print $1, $2 }' "$tests/conformance/not-applicable.txt" >"$work/excused"

# complain WHAT: one line each of standard input; fails where there is one.
complain()
{
    awk -v what="$1" '{ print "cases.sh: " what ": " $0 } END { exit NR > 0 }' || touch "$work/wrong"
}

sort "$work/ids" | uniq -d | complain "twice in ids.txt"
cut -d' ' -f1 "$work/excused" | sort | uniq -d | complain "twice in not-applicable.txt"
cut -d' ' -f1 "$work/excused" | grep -Fxf "$work/ids" | complain "promised, and said not to apply"
awk -v kinds="$kinds" '$2 !~ kinds' "$work/excused" | complain "of no kind"
awk '$2 == "proxy:" { print $1 }' "$work/excused" | while read -r id; do
    grep -qw -e "$id" -e "${id}_[A-Za-z0-9_]*" "$tests/../docs/http.md" || echo "$id"
done | complain "not named in docs/http.md"
cat "$work/ids" <(cut -d' ' -f1 "$work/excused") | grep -E "$of_cases" | sort -u >"$work/known"
if [ -n "$list" ]; then
    sed -nE 's/^\| ((T|[VX][A-Z])[0-9]+) \|.*/\1/p' "$list" | sort -u >"$work/rows"
    comm -13 "$work/known" "$work/rows" | complain "in neither list"
    comm -23 "$work/known" "$work/rows" | complain "of no row"
elif [ "$(wc -l <"$work/known")" != $rows ]; then
    echo "$(wc -l <"$work/known") of $rows cases" | complain "some are in neither list"
fi

"$binary" --tap="$work/tap" --filter '@(conformance|cases)/*' >"$work/log" 2>&1 || touch "$work/red"
awk -f "$tests/verdicts.awk" "$work/tap" >"$work/verdicts"
awk -v file="$work/ids" '
    BEGIN { while ((getline id < file) > 0) id_of[++count] = id }
    !n[$1]++ { first[$1] = $2 }
    $3 == "failed" { red[$1] = 1 }
    END {
        for (i = 1; i <= count; i++) {
            id = id_of[i]
            verdict = !n[id] ? "failed: no test" : red[id] ? "failed" : "passed"
            printf "%-5s %-92s %s\n", id, first[id] (n[id] > 1 ? " and " n[id] - 1 " more" : ""), verdict
            passed += verdict == "passed"
        }
        exit passed != count || count == 0
    }' "$work/verdicts" || touch "$work/wrong"
cut -d' ' -f1 "$work/verdicts" | sort -u | comm -23 - <(sort "$work/ids") | complain "a test of no id"
printf '%d ids, %d tests, %d passed; ' "$(wc -l <"$work/ids")" "$(wc -l <"$work/verdicts")" \
    "$(grep -c ' passed$' "$work/verdicts")"
cut -d' ' -f2 "$work/excused" | sort | uniq -c | awk '{ printf "%s%s %s", n++ ? ", " : "not applicable: ", $2, $1 } END { print "" }'
[ -e "$work/red" ] && cat "$work/log"
[ ! -e "$work/red" ] && [ ! -e "$work/wrong" ]
