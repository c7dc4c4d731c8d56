#!/bin/bash
# cases_controls.sh - each complaint of cases.sh, provoked: on a copy of the lists in which one thing is wrong, with a
# binary that only says which tests there are.
#
# Usage: cases_controls.sh
# What cases.sh says counts for something only while each of its complaints can be heard.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
problems=0

# begin: a copy in which all is right, a binary whose tests are green, and a list of cases with a row each.
begin()
{
    rm -rf "${work:?}"/*
    mkdir -p "$work/tests/conformance" "$work/docs"
    cp tests/cases.sh tests/ids_list.sh tests/verdicts.awk "$work/tests"
    cp tests/conformance/*.txt "$work/tests/conformance"
    cp docs/http.md "$work/docs"
    ids=$work/tests/conformance/ids.txt
    excused=$work/tests/conformance/not-applicable.txt
    tap=$work/tap
    list=$work/list
    tests/ids_list.sh all | sed 's/.*/ok - cases::&_of_that_name  (0.00s)/' >"$tap"
    { tests/ids_list.sh cases; awk '/^[A-Z]+[0-9]+ / { print $1 }' "$excused"; } | sed 's/.*/| & | a | b |/' >"$list"
    cat >"$work/binary" <<'BINARY'
#!/bin/bash
for word; do [[ $word = --tap=* ]] && cat "$(dirname "$0")/tap" >"${word#--tap=}"; done
echo "what the tests printed"
[ ! -e "$(dirname "$0")/crashed" ] && ! grep -q '^not ok' "$(dirname "$0")/tap"
BINARY
    chmod +x "$work/binary"
}

# run: cases.sh on the copy, with the list of cases where there is one.
run()
{
    # shellcheck disable=SC2046
    "$work/tests/cases.sh" "$work/binary" $([ -e "$list" ] && echo "$list") 2>&1
}

# red NAME WORDS: must fail, and say these words.
red()
{
    local output status
    output=$(run)
    status=$?
    if [ $status != 0 ] && grep -q -- "$2" <<<"$output"; then
        echo "red, as it should be: $1"
    else
        echo "NOT red for its reason: $1: exit status $status, without \"$2\" in:"
        grep -v ' passed$' <<<"$output"
        problems=$((problems + 1))
    fi
}

# green NAME: must pass, or red proves nothing.
green()
{
    local output
    output=$(run) && echo "green, as it should be: $1" && return
    echo "NOT green: $1:"
    grep -v ' passed$' <<<"$output"
    problems=$((problems + 1))
}

begin
green 'all in order, with the list of cases'
rm "$list"
green 'all in order, without it'

begin
echo 'T1 once more' >>"$ids"
red 'an id twice in ids.txt' 'twice in ids.txt: T1'
begin
echo 'T33 names: once more' >>"$excused"
red 'an id twice in not-applicable.txt' 'twice in not-applicable.txt: T33'
begin
echo 'T1 names: in both' >>"$excused"
red 'an id in both lists' 'promised, and said not to apply: T1'
begin
sed -i 's/^T33 names:/T33 whim:/' "$excused"
red 'a reason of no kind' 'of no kind: T33'
begin
sed -i 's/VA8/VAx/g' "$work/docs/http.md"
red 'what is left to lbproxy and not named there' 'not named in docs/http.md: VA8'
begin
echo '| T999 | a | b |' >>"$list"
red 'a row in neither list' 'in neither list: T999'
begin
sed -i '/^| T1 /d' "$list"
red 'an id of no row' 'of no row: T1'
begin
sed -i '/^T33 /d' "$excused"
rm "$list"
red 'a case less, without the list of cases' 'some are in neither list'
begin
sed -i '/::T1_/d' "$tap"
red 'an id without a test' 'T1 .*failed: no test'
begin
sed -i 's/^ok \(- cases::T1_\)/not ok \1/' "$tap"
red 'a red test' 'T1 .*failed$'
begin
sed -i 's/^ok \(- cases::T1_\)/not ok \1/' "$tap"
red 'what a red test printed' 'what the tests printed'
begin
echo 'not ok - cases::T1_another_of_its_tests  (0.00s)' >>"$tap"
red 'the second test of an id alone' 'T1 .*and 1 more.*failed$'
begin
echo 'ok - cases::T999_of_no_id  (0.00s)' >>"$tap"
red 'a test of no id' 'a test of no id: T999'
begin
touch "$work/crashed"
red 'a binary that fails though no test does' 'what the tests printed'
begin
: >"$tap"
red 'a binary without tests' 'T1 .*failed: no test'
[ $problems = 0 ]
