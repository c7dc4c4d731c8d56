#!/bin/bash
# sites.sh - shows that the scenarios reach every allocation site of the core, and that each was refused memory.
#
# A site is a line of backoff/, link/ or pool/ that asks for memory itself, or by way of one that does: link__alloc(),
# an entry of a table, a place in a heap, a line's places, a link, options. gcov counts how often it was reached. Each
# time an allocation is refused the suite notes the calls under way: a site that is among them was refused.
# Exits 1 when a site was not reached, or never refused.
#
# Usage: sites.sh DIRECTORY    where the suite `faults` is, counted by gcov (make KIND=cover)
set -u
cd "$(dirname "$0")/../.." || exit 1
built=${1:?sites.sh: the directory is missing}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
askers='link__alloc|link__heap_hold|pool__line_hold|hold_heaps|add_slab|HASH_ADD|HASH_ADD_KEYPTR|env->realloc|allocate'
askers="$askers|link__new|pool__link_new|pool__settings_new|pool__name_add"

find "$built" -name '*.gcda' -delete
FAULTS_STACKS=$work/stacks "$built/faults" --filter 'faults_memory/*' >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
# /path/faults(+0x1234) [0x...]: where each call returns to; the byte before lies in the call.
sed -n 's/^[^(]*(+\(0x[0-9a-f]*\)).*/\1/p' "$work/stacks" | sort -u |
    while read -r at; do printf '%#x\n' $((at - 1)); done |
    addr2line -e "$built/faults" | sed "s|^$PWD/||; s/ (disc.*//" | sort -u >"$work/refused"

for source in backoff/*.c link/*.c pool/*.c; do
    gcov -t -o "$built/${source%.c}.o" "$source" 2>/dev/null | awk -v source="$source" -v askers="[^_a-z](${askers})[(]" '
        /^ *-: *0:Source:/ { ours = index($0, "Source:" source) > 0 }
        !ours || /^ *-:/ { next }
        {
            code = $0
            sub(/^[^:]*:[^:]*:/, "", code)
            if (code !~ askers || code ~ /^[^ ]/ || code ~ /, 0\);$/) next # its definition; and to make it 0 bytes long is to free it
            split($0, part, ":")
            count = part[1]
            gsub(/[ *]/, "", count)
            sub(/^ */, "", code)
            print source ":" part[2] + 0, count + 0, code
        }'
done >"$work/sites"

while read -r site count code; do
    how=refused
    grep -qx "$site" "$work/refused" || how='NEVER REFUSED'
    [ "$count" -gt 0 ] || how='NOT REACHED'
    printf '%-18s %9d times, %-14s %s\n' "$site" "$count" "$how" "$code"
done <"$work/sites" | tee "$work/table"
n=$(grep -c . "$work/table")
bad=$(grep -c 'NOT REACHED\|NEVER REFUSED' "$work/table")
echo "$n sites, $bad of them not reached or never refused; $(grep -o 'Tested: [0-9]*' "$work/log" | tail -1 | tr -dc 0-9) scenarios"
[ "$n" -ge 30 ] && [ "$bad" -eq 0 ]
