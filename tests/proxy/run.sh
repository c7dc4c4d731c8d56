#!/bin/bash
# run.sh - lbproxy in tcp mode before real servers, with real clients: nginx, redis-server, curl, wrk, redis-benchmark.
#
# Usage: run.sh DIRECTORY [CASE...]    the one with the programs: all examples, and stream
# All on loopback, at ports that the system picks, in a temporary folder. A line a case, then their sum; exit status 0
# only if all passed, and nothing is left running. With a sanitized lbproxy memory is not measured; all else is.
set -u
bin=$(cd "${1:?run.sh: the directory of the programs is missing}" && pwd) || exit 1
shift
cd "$(dirname "$0")/../.." || exit 1
for program in "$bin"/{lbproxy,backend,demo_client,quickstart,fanout,stream,http_stream,storm_client,storm_backend} nginx apache2 node python3 ab hey redis-server redis-cli redis-benchmark curl wrk prlimit; do
    command -v "$program" >/dev/null || { echo "run.sh: $program: not a program" >&2; exit 1; }
done
export ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=1}
ulimit -Sn 8192 || exit 1 # a thousand clients, and their links

for cases in case streams programs crowd limits life real load; do
    # shellcheck source=/dev/null
    . "tests/proxy/$cases.sh"
done
# These take twenty seconds whatever the machine can do: they run beside the others.
beside=(a_slow_client_makes_the_backend_wait_and_takes_no_memory a_slow_backend_makes_the_client_wait_and_takes_no_memory)
one_by_one=("${streams[@]}" "${programs[@]}" "${crowd[@]}" "${limits[@]}" "${life[@]}" "${real[@]}" "${load[@]}")
if [ $# != 0 ]; then
    beside=()
    one_by_one=("$@")
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/linkpool-proxy.XXXXXX") || exit 1
declare -A group # of the processes of each case under way, by its name
end_run()
{
    for name in "${!group[@]}"; do
        kill -TERM -- "-${group[$name]}" 2>/dev/null
    done
    wait
    rm -rf "$work"
}
trap end_run EXIT
trap 'exit 1' INT TERM HUP

# launch_case NAME: in a process group of its own, so that all of it can be ended.
launch_case()
{
    set -m
    run_case "$1" &
    set +m
    group[$1]=$!
}

await_case()
{
    wait "${group[$1]}"
    unset "group[$1]"
}

for name in "${beside[@]}"; do
    launch_case "$name"
done
for name in "${one_by_one[@]}"; do
    launch_case "$name"
    await_case "$name"
done
for name in "${beside[@]}"; do
    await_case "$name"
done

count()
{
    find "$work" -maxdepth 1 -name "*.$1" | wc -l
}
echo "$(count passed) passed, $(count failed) failed"
[ "$(count passed)" = $((${#beside[@]} + ${#one_by_one[@]})) ]
