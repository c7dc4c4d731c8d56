#!/bin/bash
# quiet.sh - leasing makes no system call: what strace sees between the two marks of the benchmark's timed part is nothing.
#
# Usage: quiet.sh BENCH    the benchmark's program
set -eu
log=$(mktemp "${TMPDIR:-/tmp}/linkpool-quiet.XXXXXX")
trap 'rm -f "$log"' EXIT

strace -f -o "$log" "$1" 10 >/dev/null || true # its figures mean nothing under strace
calls=$(sed -n '/timed part begins/,/timed part ends/p' "$log" | grep -vc 'timed part' || true)
marks=$(grep -c 'timed part' "$log" || true)
if [ "$marks" != 2 ] || [ "$calls" != 0 ]; then
    echo "quiet.sh: $calls system calls in the timed part, $marks marks of 2" >&2
    exit 1
fi
echo "no system call in the timed part"
