#!/bin/bash
# valgrind.sh - runs a Criterion binary under valgrind's memcheck and reads the verdict from its logs.
#
# Usage: valgrind.sh BINARY [CRITERION-OPTION...]
# Criterion runs each test in a process of its own and swallows what valgrind says of it: so each process has a log, any
# error or definite or indirect leak in any of them is a failure, and so is a run with fewer logs than tests. The system's
# own programs, which a test may start, are not looked at.
set -u
binary=${1:?valgrind.sh: the binary is missing}
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

valgrind -q --trace-children=yes --trace-children-skip='/bin/*,/usr/bin/*' --read-inline-info=no --leak-check=full \
    --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
    --log-file="$work/log.%p" \
    "$binary" -j"$(nproc)" --timeout 300 --tap="$work/tap" "$@"
status=$?

tests=$(grep -c ' - .*::' "$work/tap")
skipped=$(grep -c '# SKIP' "$work/tap")
ran=$((tests - skipped))
logs=$(find "$work" -name 'log.*' | wc -l)
if [ "$ran" -eq 0 ] || [ "$logs" -le "$ran" ]; then # the runner has one, too
    echo "valgrind.sh: $ran tests, $logs logs: not all of it ran under valgrind" >&2
    status=1
fi
faulty=$(find "$work" -name 'log.*' -size +0)
if [ -n "$faulty" ]; then
    # shellcheck disable=SC2086
    cat $faulty
    echo "valgrind.sh: errors in $(echo "$faulty" | wc -l) of $logs processes" >&2
    status=1
fi
exit $status
