#!/bin/bash
# run.sh - lbproxy in tcp mode before real servers, with real clients: nginx, redis-server, curl, wrk, redis-benchmark.
#
# Usage: run.sh DIRECTORY [CASE...]    the one with the programs: lbproxy, backend, demo_client, stream
# All on loopback, at ports that the system picks, in a temporary folder. A line a case, then their sum; exit status 0
# only if all passed, and nothing is left running. With a sanitized lbproxy memory is not measured; all else is.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=$(cd "${1:?run.sh: the directory of the programs is missing}" && pwd) || exit 1
shift
for program in "$bin"/{lbproxy,backend,demo_client,stream} nginx redis-server redis-cli redis-benchmark curl wrk prlimit; do
    command -v "$program" >/dev/null || { echo "run.sh: $program: not a program" >&2; exit 1; }
done
export ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=1}
ulimit -n "$(ulimit -Hn)" # a thousand clients, and their links

for cases in case streams programs crowd limits life; do
    # shellcheck source=/dev/null
    . "tests/proxy/$cases.sh"
done
# These take twenty seconds whatever the machine can do: they run beside the others.
beside=(a_slow_client_makes_the_backend_wait_and_takes_no_memory a_slow_backend_makes_the_client_wait_and_takes_no_memory)
one_by_one=("${streams[@]}" "${programs[@]}" "${crowd[@]}" "${limits[@]}" "${life[@]}")
if [ $# != 0 ]; then
    beside=()
    one_by_one=("$@")
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/linkpool-proxy.XXXXXX") || exit 1
background=()
end_run()
{
    [ ${#background[@]} = 0 ] || kill "${background[@]}" 2>/dev/null
    wait
    rm -rf "$work"
}
trap end_run EXIT
trap 'exit 1' INT TERM HUP

for name in "${beside[@]}"; do
    run_case "$name" &
    background+=($!)
done
for name in "${one_by_one[@]}"; do
    run_case "$name"
done
[ ${#background[@]} = 0 ] || wait "${background[@]}"
background=()

count()
{
    find "$work" -maxdepth 1 -name "*.$1" | wc -l
}
echo "$(count passed) passed, $(count failed) failed"
[ "$(count passed)" = $((${#beside[@]} + ${#one_by_one[@]})) ]
