#!/bin/bash
# ids_list.sh - prints ids of tests/conformance/ids.txt, where a line is an id and its promise, in their order.
#
# Usage: ids_list.sh [reference|cases|all]    reference behaviours (the default), cases, or both.
case ${1:-reference} in
reference) ids='^[NSGHR][0-9]+$' ;;
cases) ids='^(T|[VX][A-Z])[0-9]+$' ;;
*) ids='^[A-Z]+[0-9]+$' ;;
esac
awk -v ids="$ids" '$1 ~ ids { print $1 }' "$(dirname "$0")/conformance/ids.txt"
