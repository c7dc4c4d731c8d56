#!/bin/bash
# ids_list.sh - prints the ids of the reference behaviours that are to be shown, in the order of tests/conformance/ids.txt,
# where a line is an id and its promise.
cd "$(dirname "$0")/conformance" || exit 1
cat ids.txt ids.d/* 2>/dev/null | awk '/^[A-Z][0-9]+[ \t]/ && !seen[$1]++ { print $1 }'
