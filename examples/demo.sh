#!/bin/bash
# demo.sh - three backends, lbproxy before them, real requests through it; one backend is killed with -9 at a random
# moment and brought back. Shows a line a second, then what client, proxy and backends counted, and whether they agree.
#
# Usage: demo.sh DIRECTORY    the one with the programs: backend, lbproxy, demo_client
# The last line is the summary's figures as JSON. Exit status 0 only if all held; nothing is left running.
set -u

bin=${1:?demo.sh: the directory of the programs is missing}
seconds=12
slots=24
requests=50 # a connection
for program in backend lbproxy demo_client; do
    [ -x "$bin/$program" ] || { echo "demo.sh: $bin/$program: not a program" >&2; exit 1; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/linkpool-demo.XXXXXX") || exit 1

declare -A pid address
clean_up()
{
    kill -9 "${pid[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "demo.sh: $*" >&2
    exit 1
}

now()
{
    echo "${EPOCHREALTIME/,/.}"
}

# start NAME PROGRAM OPTION...: runs it with its output in a file; waits for its "listening on".
start()
{
    local name=$1
    shift
    : >"$work/$name.out"
    "$@" >"$work/$name.out" 2>"$work/$name.err" &
    pid[$name]=$!
    disown
    for _ in {1..200}; do
        address[$name]=$(sed -n 's/^listening on //p' "$work/$name.out")
        [ -n "${address[$name]}" ] && return
        kill -0 "${pid[$name]}" 2>/dev/null || break
        sleep 0.01
    done
    fail "$name does not start: $(cat "$work/$name.err")"
}

start_backend()
{
    start "$1" "$bin/backend" --listen "$2" --name "$1" --log "$work/$1.log" --body 1000
}

# status: the proxy's page.
status()
{
    exec 4<>"/dev/tcp/${status_address%:*}/${status_address##*:}" || return
    cat <&4
    exec 4>&- 4<&-
}

# Names and values of a line of the page: figure 'backend 127.0.0.1:1' leases
figure()
{
    awk -v line="$1 " -v name="$2" 'index($0, line) == 1 { for (i = 1; i < NF; i++) if ($i == name) print $(i + 1) }' \
        "$work/status"
}

show_second()
{
    status >"$work/status" || return
    awk -v line="$*" '
        BEGIN {
            n = split(line, f, " ")
            out = sprintf("%3d s %7d req/s  ", f[1], f[2])
            for (i = 4; i < n; i += 2) share[f[i]] = f[2] > 0 ? 100 * f[i + 1] / f[2] : 0
            out = out sprintf("a %4.1f %%  b %4.1f %%  c %4.1f %%", share["a"], share["b"], share["c"])
        }
        $1 == "backend" {
            for (i = 15; i < NF; i += 2) links[$i] += $(i + 1)
        }
        END {
            out = out "   links"
            for (s in links) if (links[s] > 0) out = out " " s " " links[s]
            print out "   failed " f[3]
        }' "$work/status"
}

for name in a b c; do
    start_backend $name 127.0.0.1:0
done
start proxy "$bin/lbproxy" --listen 127.0.0.1:0 --status 127.0.0.1:0 --backend "${address[a]}" \
    --backend "${address[b]}" --backend "${address[c]}"
for _ in {1..200}; do
    status_address=$(sed -n 's/^status on //p' "$work/proxy.out")
    [ -n "$status_address" ] && break
    sleep 0.01
done
echo "backends ${address[a]} ${address[b]} ${address[c]}, lbproxy ${address[proxy]}, status page $status_address"

names=(a b c)
victim=${names[RANDOM % 3]}
kill_at=$((3 + RANDOM % 3))
mkfifo "$work/seconds"
"$bin/demo_client" --to "${address[proxy]}" --seconds $seconds --connections $slots --requests $requests \
    --log "$work/client.log" >"$work/seconds" &
pid[client]=$!
killed_at=0
back_at=0
while read -r second rest; do
    show_second "$second" "$rest"
    if [ "$second" = $kill_at ]; then
        sleep "0.$((RANDOM % 900 + 100))"
        kill -9 "${pid[$victim]}"
        killed_at=$(now)
        echo "      backend $victim killed"
    elif [ "$second" = $((kill_at + 3)) ]; then
        start_backend "$victim" "${address[$victim]}"
        back_at=$(now)
        echo "      backend $victim is back"
    fi
done <"$work/seconds"
wait "${pid[client]}" || fail "the client failed"

# Its last connections have ended, and the proxy knows.
for _ in {1..100}; do
    status >"$work/status"
    [ "$(figure clients open)" = 0 ] && break
    sleep 0.05
done

problems=0
problem()
{
    echo "WRONG: $*"
    problems=$((problems + 1))
}
expect()
{
    [ "$2" = "$3" ] || problem "$1: $2, expected $3"
}

# Client and backends, by request id: what was answered is in that backend's log once; what a log has besides was in
# flight on the killed backend.
sort "$work/client.log" | awk '$1 == "ok" { print $2, $3 }' | sort >"$work/answered"
for name in a b c; do
    awk -v name=$name '{ print $1, name }' "$work/$name.log"
done | sort >"$work/logged"
expect "ids a backend logged twice" "$(uniq -d "$work/logged" | wc -l)" 0
expect "ids answered by a backend that has not logged them" "$(comm -23 "$work/answered" "$work/logged" | wc -l)" 0
comm -13 "$work/answered" "$work/logged" >"$work/unanswered"
expect "ids logged and unanswered, but not by the killed backend" \
    "$(awk -v victim="$victim" '$2 != victim' "$work/unanswered" | wc -l)" 0
awk '$1 == "failed" { print $2 }' "$work/client.log" | sort >"$work/failed"
expect "ids logged and unanswered that the client does not know as failed" \
    "$(cut -d' ' -f1 "$work/unanswered" | sort | comm -23 - "$work/failed" | wc -l)" 0

# What failed was under way on the killed backend, at its death.
expect "requests failed elsewhere or at another time" \
    "$(awk -v victim="$victim" -v at="$killed_at" '$1 == "failed" && (($3 != victim && $3 != "-") ||
        $4 < at - 0.5 || $4 > at + 0.5)' "$work/client.log" | wc -l)" 0
expect "clients that got no link" "$(figure clients unserved)" 0
failed=$(wc -l <"$work/failed")
[ "$failed" -le $slots ] || problem "requests failed: $failed, more than were under way ($slots)"

# The proxy and the client, by connections and bytes; of the killed backend's, what was on its way may be missing.
spread_least=0
spread_most=0
for name in a b c; do
    read -r connections sent received < <(awk -v name=$name '$1 == "connection" && $2 == name {
        n++; sent += $3; received += $4 } END { print n + 0, sent + 0, received + 0 }' "$work/client.log")
    leases=$(figure "backend ${address[$name]}" leases)
    to=$(figure "backend ${address[$name]}" bytes_to)
    from=$(figure "backend ${address[$name]}" bytes_from)
    expect "links still held by $name" "$(figure "backend ${address[$name]}" held)" 0
    if [ $name != "$victim" ]; then
        expect "connections of $name: the proxy's count" "$leases" "$connections"
        expect "bytes to $name: the proxy's count" "$to" "$sent"
        expect "bytes from $name: the proxy's count" "$from" "$received"
        [ $spread_least = 0 ] || [ "$connections" -lt $spread_least ] && spread_least=$connections
        [ "$connections" -gt $spread_most ] && spread_most=$connections
    else
        lost=$((leases - connections)) # they ended before a first answer
        { [ $lost -ge 0 ] && [ $lost -le "$failed" ]; } || problem "connections of $name: $leases at the proxy, $connections at the client"
        [ "$to" -ge $((sent - failed * 200)) ] || problem "bytes to $name: $to at the proxy, $sent at the client"
        [ "$from" -ge "$received" ] || problem "bytes from $name: $from at the proxy, $received at the client"
    fi
done
connections=$(grep -c '^connection ' "$work/client.log")
expect "connections: the proxy's count" "$(figure clients accepted)" "$connections"

kill -TERM "${pid[proxy]}"
for _ in {1..200}; do
    kill -0 "${pid[proxy]}" 2>/dev/null || break
    sleep 0.01
done
kill -0 "${pid[proxy]}" 2>/dev/null && problem "lbproxy does not end after SIGTERM"

answered=$(wc -l <"$work/answered")
again=$(awk -v victim="$victim" -v at="$back_at" '$1 == "ok" && $3 == victim && $4 > at {
    printf "%.3f", $4 - at; exit }' "$work/client.log")
[ -n "$again" ] || problem "the dead backend had no traffic again"
shares=$(awk '{ n[$2]++ } END { printf "\"a\": %.4f, \"b\": %.4f, \"c\": %.4f", n["a"] / NR, n["b"] / NR, n["c"] / NR }' \
    "$work/answered")
spread=$(awk -v least=$spread_least -v most=$spread_most 'BEGIN { printf "%.4f", (least > 0) ? most / least : 0 }')
awk -v spread="$spread" 'BEGIN { exit !(spread >= 1 && spread <= 1.1) }' ||
    problem "the backends that lived had unequal shares: $spread"
opened=$(figure links opened)

echo
echo "$answered requests answered over $connections client connections, $failed failed, all in flight on the killed backend $victim"
echo "shares $shares; of those that lived the most had $spread times the connections of the least"
echo "$opened links opened; backend $victim had traffic again ${again:-never} s after it was back"
[ $problems = 0 ] && echo "client, proxy and backends agree" || echo "$problems things did not hold"
echo "{\"held\": $([ $problems = 0 ] && echo true || echo false), \"answered\": $answered, \"failed\": $failed," \
    "\"connections\": $connections, \"links_opened\": $opened, \"shares\": {$shares}, \"spread\": $spread," \
    "\"killed\": \"$victim\", \"traffic_again_after\": ${again:-null}}"
[ $problems = 0 ]
