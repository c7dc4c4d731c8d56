#!/bin/bash
# controls.sh - runs the planted faults of tests/controls/: each must turn its run red, and for the reason it should.
#
# Usage: controls.sh SANITIZED PLAIN    the binary with the sanitizers, and the one for valgrind
# Criterion alone counts a leak as passed and hears nothing of valgrind: what is green elsewhere counts for something
# only while these are red.
set -u
cd "$(dirname "$0")/.." || exit 1
sanitized=${1:?controls.sh: the binary with the sanitizers is missing}
plain=${2:?controls.sh: the binary for valgrind is missing}
problems=0

# red FAULT WORDS COMMAND...: must fail, and say these words.
red()
{
    local fault=$1 words=$2 output status
    shift 2
    output=$("$@" --filter "faults/$fault" 2>&1)
    status=$?
    if [ $status != 0 ] && grep -q -- "$words" <<<"$output"; then
        echo "red, as it should be: $fault, $1"
    else
        echo "NOT red for its reason: $fault, $1: exit status $status, without \"$words\" in:"
        echo "$output"
        problems=$((problems + 1))
    fi
}

# green COMMAND...: must pass, or red proves nothing.
green()
{
    local output
    output=$("$@" --filter faults/green 2>&1) && echo "green, as it should be: $1" && return
    echo "NOT green: $1:"
    echo "$output"
    problems=$((problems + 1))
}

green "$sanitized"
red failed_assertion 'Assertion Failed' "$sanitized"
red leak 'LeakSanitizer: detected memory leaks' "$sanitized"
red heap_overflow 'AddressSanitizer: heap-buffer-overflow' "$sanitized"
red undefined_behaviour 'signed integer overflow' "$sanitized"

green tests/valgrind.sh "$plain"
red failed_assertion 'Assertion Failed' tests/valgrind.sh "$plain"
red leak 'definitely lost' tests/valgrind.sh "$plain"
red heap_overflow 'Invalid write' tests/valgrind.sh "$plain"
red uninitialised_read 'uninitialised value' tests/valgrind.sh "$plain"
[ $problems = 0 ]
