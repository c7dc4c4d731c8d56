#!/bin/bash
# storm.sh - 200 clients ask lbproxy, whose three backends die, stall, answer twice, late, cut short and not at all;
# then the logs of all of them are held against each other.
#
# Usage: storm.sh DIRECTORY [--requests N] [--seed S] [--threads N] [--keep FOLDER]
#
# DIRECTORY has lbproxy, storm_client and storm_backend. The seed decides each request, what each backend does to it,
# and the weather: when which backend is killed or stopped. It is printed; which request meets which moment still
# differs from run to run. The logs are thrown away, or kept in FOLDER. Exit status 0: no fault was found.
# shellcheck disable=SC2154,SC2034 # pid, address, status and mode are case.sh's
set -u
bin=$(cd "${1:?storm.sh: the directory of the programs is missing}" && pwd) || exit 1
shift
here=$(cd "$(dirname "$0")" && pwd)
requests=20000 seed=$((EPOCHSECONDS ^ $$)) threads=1 keep=
while [ $# -ge 2 ]; do
    case $1 in
    --requests) requests=$2 ;;
    --seed) seed=$2 ;;
    --threads) threads=$2 ;;
    --keep) keep=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# = 0 ] || { echo "storm.sh: $1: not an option" >&2; exit 2; }
echo "storm: $requests requests, seed $seed"
ulimit -Sn 4096 || exit 1

# shellcheck source=/dev/null
. "$here/../case.sh"
dir=$(mktemp -d "${TMPDIR:-/tmp}/linkpool-storm.XXXXXX") || exit 1
declare -A due  # when what is down is to be up again, what is stopped to go on: in milliseconds
declare -A state # up, down or stopped
mode=http
RANDOM=$((seed % 32768))

end_storm()
{
    end_case
    if [ -n "$keep" ]; then
        mkdir -p "$keep" && cp "$dir"/*.log "$dir"/*.err "$keep"
    fi
    rm -rf "$dir"
}
trap end_storm EXIT
trap 'exit 1' INT TERM HUP

listens()
{
    grep -q '^listening on' "$dir/$name.out" # the name is start_on_free_port's
}

# backend NAME ADDRESS: the command that runs it.
backend()
{
    local -A number=([a]=0 [b]=1 [c]=2)
    command=("$bin/storm_backend" --listen "$2" --number "${number[$1]}" --seed "$seed" --log "$dir/$1.log" --idle 0.05)
}

event()
{
    echo "$EPOCHREALTIME $1 ${pid[$1]} $2" >>"$dir/events.log"
}

# ---- the weather: what happens to a backend now ----

fall()
{
    event "$1" down
    state[$1]=down
    due[$1]=$((now + RANDOM % 400))
}

# stands NAME: it is disowned, so that bash does not tell of its end.
stands()
{
    disown "${pid[$1]}"
    state[$1]=up
}

rise()
{
    backend "$1" "${address[$1]}"
    launch "$1" "${command[@]}"
    stands "$1"
}

strike()
{
    case $((RANDOM % 1000)) in
    [0-9] | 1[0-2])
        event "$1" killed
        kill -9 "${pid[$1]}"
        ;;
    9[0-4][0-9])
        [ $((RANDOM % 10)) = 0 ] || return
        event "$1" stopped
        kill -STOP "${pid[$1]}"
        state[$1]=stopped
        due[$1]=$((now + 200 + RANDOM % 1400))
        ;;
    esac
}

thaw()
{
    kill -CONT "${pid[$1]}"
    event "$1" continued
    state[$1]=up
}

# One look at each backend.
blow()
{
    local name now
    now=$(milliseconds)
    for name in a b c; do
        if [ "${state[$name]}" = up ]; then
            if is_over "$name"; then fall "$name"; else strike "$name"; fi
        elif [ "$now" -ge "${due[$name]}" ]; then
            if [ "${state[$name]}" = down ]; then rise "$name"; else thaw "$name"; fi
        fi
    done
}

# ---- the run ----

: >"$dir/events.log"
for name in a b c; do
    backend $name 127.0.0.1:PORT
    start_on_free_port $name listens "${command[@]}"
    stands $name
done
start_proxy --backend "${address[a]}" --backend "${address[b]}" --backend "${address[c]}" --threads "$threads" \
    --access-log "$dir/access.log" --answer-timeout 1 --body-timeout 1
launch client "$bin/storm_client" --to "${address[proxy]}" --requests "$requests" --seed "$seed" --log "$dir/client.log"
until is_over client; do
    sleep 0.03 # the beat of the weather; nothing is awaited by it
    blow
    is_over proxy && fail "lbproxy is over: $(cat "$dir/proxy.err")"
done
status_of client
expect "the client's exit status ($(cat "$dir/client.err"))" "$status" 0
cat "$dir/client.out"
for name in a b c; do
    [ "${state[$name]}" = stopped ] && thaw $name
done
expect_quiet
end_proxy
expect "what the backends said to stderr" "$(cat "$dir"/[abc].err)" ""
awk -f "$here/reconcile.awk" -v requests="$requests" -v addresses="${address[a]} ${address[b]} ${address[c]}" \
    "$dir"/{events,a,b,c,access,client}.log
