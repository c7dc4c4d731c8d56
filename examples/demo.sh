#!/bin/bash
# demo.sh - three backends, lbproxy before them in http mode, real requests through it; one backend is killed with -9 at
# a random moment and brought back. Shows a line a second, then what client, proxy and backends counted, and whether
# they agree, request by request.
#
# Usage: demo.sh DIRECTORY    the one with the programs: backend, lbproxy, demo_client
# The last line is the summary's figures as JSON. Exit status 0 only if all held; nothing is left running.
set -u
export LC_ALL=C # one order for all that is sorted, and points in numbers

bin=${1:?demo.sh: the directory of the programs is missing}
seconds=12
slots=24
requests=50     # a connection of the client's
pause=0.003     # seconds a client waits between two: at full throttle a turn goes to whoever has a link free, and the
                # shares say how the system has shared out its processors
delay=0.002     # and a backend before it answers, so that it has some under way when it is killed
body=1000       # bytes of an answer
max_opened=0.01 # connections to backends a request: with more of them they are not reused
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
    echo "$EPOCHREALTIME"
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
    start "$1" "$bin/backend" --listen "$2" --name "$1" --log "$work/$1.log" --body $body --delay $delay
}

# status: the proxy's page. Plain bash, since nothing that speaks HTTP need be installed.
status()
{
    local first
    exec 4<>"/dev/tcp/${status_address%:*}/${status_address##*:}" || return
    printf 'GET / HTTP/1.0\r\n\r\n' >&4
    read -r first <&4
    [[ $first = *' 200 '* ]] && sed '1,/^\r$/d' <&4
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
    status >"$work/status"
    awk -v line="$*" '
        BEGIN {
            n = split(line, f, " ")
            for (i = 4; i < n; i += 2) share[f[i]] = f[2] > 0 ? 100 * f[i + 1] / f[2] : 0
        }
        $1 == "backend" {
            for (i = 15; i < NF; i += 2) links[$i] += $(i + 1)
        }
        $1 == "links" { opened = $13 }
        $1 == "requests" { requests = $2; again = $4 }
        END {
            printf "%3d s %7d req/s  a %4.1f %%  b %4.1f %%  c %4.1f %%", f[1], f[2], share["a"], share["b"], share["c"]
            printf "   opened %d, %.5f a request   links", opened, (requests > 0 ? opened / requests : 0)
            for (s in links) if (links[s] > 0) printf " %s %d", s, links[s]
            printf "   tried again %d, failed %d\n", again, f[3]
        }' "$work/status"
}

for name in a b c; do
    start_backend $name 127.0.0.1:0
done
start proxy "$bin/lbproxy" --listen 127.0.0.1:0 --status 127.0.0.1:0 --backend "${address[a]}" \
    --backend "${address[b]}" --backend "${address[c]}" --access-log "$work/access.log"
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
    --pause $pause --log "$work/client.log" >"$work/seconds" &
pid[client]=$!
killing_at=0
killed_at=0
logged_at_death=0 # by the victim: lines
back_at=0
while read -r second rest; do
    show_second "$second" "$rest"
    if [ "$second" = $kill_at ]; then
        sleep "0.$((RANDOM % 900 + 100))"
        killing_at=$(now)
        kill -9 "${pid[$victim]}"
        killed_at=$(now)
        echo "      backend $victim killed"
    elif [ "$second" = $((kill_at + 3)) ]; then
        logged_at_death=$(wc -l <"$work/$victim.log")
        start_backend "$victim" "${address[$victim]}"
        back_at=$(now)
        echo "      backend $victim is back"
    fi
done <"$work/seconds"
wait "${pid[client]}" || fail "the client failed"
[ "$back_at" != 0 ] || fail "the client was over before a backend was killed and back"

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

kill -TERM "${pid[proxy]}"
for _ in {1..200}; do
    kill -0 "${pid[proxy]}" 2>/dev/null || break
    sleep 0.01
done
kill -0 "${pid[proxy]}" 2>/dev/null && problem "lbproxy does not end after SIGTERM"

# ---- each request, by its id ----

# What the three know, a line each: ID client TOLD BACKEND TIME BODY, or the status in its place if it failed;
# ID proxy OUTCOME BACKEND STATUS BODY TRIES; ID backend NAME WHEN. WHEN is `dying` in the last lines that the victim
# logged before its death, as many as requests could be under way.
gather()
{
    local name last
    awk '$1 == "ok" || $1 == "failed" { print $2, "client", $1, $3, $4, $5 }' "$work/client.log"
    awk -v known="${address[a]} a ${address[b]} b ${address[c]} c" '
        BEGIN {
            for (n = split(known, f, " "); n > 0; n -= 2) name[f[n - 1]] = f[n]
        }
        {
            id = $4
            sub(/^.*[?]id=/, "", id)
            print id, "proxy", $12, ($9 in name) ? name[$9] : $9, $5, $6, $11
        }' "$work/access.log"
    for name in a b c; do
        last=0
        [ $name = "$victim" ] && last=$logged_at_death
        awk -v name=$name -v last="$last" -v slots=$slots '
            { print $1, "backend", name, (NR <= last && NR > last - slots) ? "dying" : "alive" }' "$work/$name.log"
    done
}

# The rules, for all lines of one id. What was answered is in that backend's log once. Besides there may be one line,
# the first try's: the victim's, of its last ones, for it was in flight as that died; the victim has not answered it,
# and lbproxy has tried it again, or it failed. Nothing is tried again, and nothing fails, but for this death.
# Prints what is wrong: RULE, a tab, ID. The sums go to a file.
judge()
{
    awk -v victim="$victim" -v killing="$killing_at" -v killed="$killed_at" -v body=$body -v sums="$work/sums" '
        function check(holds, rule)
        {
            if (!holds) print rule "\t" id
        }
        function judge_answered()
        {
            check(logged[told_by] == 1, "ids answered by a backend that has not logged them once")
            check(outcome == "ok" && status == 200 && tried_at == told_by,
                "ids answered otherwise in the log of lbproxy")
            check(told_body == body && passed_body == body, "ids answered with a body that has lost or won bytes")
            answered[told_by]++
            saved += tries == 2
            twice += lines == 2
            bytes[told_by] += told_body
        }
        function judge_failed()
        {
            check(at_death && tried_at == victim, "requests failed elsewhere or at another time")
            check(outcome != "ok" && (told_body == status || told_body !~ /^[0-9]+$/),
                "ids failed otherwise in the log of lbproxy")
            failed++
            refused += told_body == status
            cut += status == 200
            broken += status == 502
        }
        function judge(    besides, at_victim)
        {
            check(asked == 1, "ids that the client has not just one line of")
            check(passed == 1, "ids that lbproxy has not just one line of")
            if (asked != 1 || passed != 1) return
            at_death = time > killing - 0.01 && time < killed + 0.5 # each by its own clock call
            at_victim = told == "ok" && told_by == victim
            besides = lines - (told == "ok" ? logged[told_by] : 0)
            check(besides == 0 || (besides == 1 && dying == 1 && at_death && !at_victim),
                "ids logged besides, and not in flight on the victim as that died")
            check(besides == 0 || told != "ok" || tries == 2, "ids logged twice that lbproxy has not tried again")
            check(tries == 1 || (tries == 2 && at_death && !at_victim), "ids tried again, but not for that death")
            retried += tries == 2
            if (told == "ok") judge_answered()
            else judge_failed()
        }
        $1 != id {
            if (NR > 1) judge()
            id = $1
            asked = passed = lines = dying = logged["a"] = logged["b"] = logged["c"] = 0
        }
        $2 == "client" { asked++; told = $3; told_by = $4; time = $5; told_body = $6 }
        $2 == "proxy" { passed++; outcome = $3; tried_at = $4; status = $5; passed_body = $6; tries = $7 }
        $2 == "backend" { lines++; logged[$3]++; dying += $4 == "dying" }
        END {
            if (NR > 0) judge()
            print "failed", failed + 0 >sums
            print "refused", refused + 0 >sums
            print "cut", cut + 0 >sums
            print "broken", broken + 0 >sums
            print "retried", retried + 0 >sums
            print "saved", saved + 0 >sums
            print "twice", twice + 0 >sums
            for (n = split("a b c", name, " "); n > 0; n--) {
                print "answered_" name[n], answered[name[n]] + 0 >sums
                printf "bytes_%s %.0f\n", name[n], bytes[name[n]] >sums
            }
        }'
}

gather | sort -s -k1,1 | judge >"$work/wrong"
while IFS=$'\t' read -r rule n id; do
    problem "$rule: $n, the first is $id"
done < <(awk -F '\t' '
    n[$1]++ == 0 { first[$1] = $2 }
    END { for (rule in n) print rule "\t" n[rule] "\t" first[rule] }' "$work/wrong")
declare -A sum
while read -r name value; do
    sum[$name]=$value
done <"$work/sums"
[ "${#sum[@]}" = 13 ] || fail "the requests could not be compared"
failed=${sum[failed]}
saved=${sum[saved]}
answered=$((sum[answered_a] + sum[answered_b] + sum[answered_c]))
[ $answered -gt 0 ] || problem "nothing was answered"
[ "$failed" -le $slots ] || problem "requests failed: $failed, more than were under way ($slots)"

# ---- the sums, as the proxy's page has them ----

spread_least=0
spread_most=0
for name in a b c; do
    begun=${sum[answered_$name]} # answers
    lost=0                       # leases that ended without one
    again=0
    if [ $name = "$victim" ]; then
        lost=$((sum[retried] + sum[broken]))
        again=${sum[retried]}
        begun=$((begun + sum[cut]))
    else
        [ "$spread_least" = 0 ] || [ "$begun" -lt "$spread_least" ] && spread_least=$begun
        [ "$begun" -gt "$spread_most" ] && spread_most=$begun
    fi
    expect "links still held by $name" "$(figure "backend ${address[$name]}" held)" 0
    expect "leases of $name: the proxy's count" "$(figure "backend ${address[$name]}" leases)" $((begun + lost))
    expect "answers of $name: the proxy's count" "$(figure "answers ${address[$name]}" 2xx)" "$begun"
    expect "requests of $name tried again: the proxy's count" "$(figure "answers ${address[$name]}" retries)" "$again"
    [ "$(figure "backend ${address[$name]}" bytes_from)" -gt "${sum[bytes_$name]}" ] ||
        problem "bytes from $name: the proxy's count is below the bodies' alone, ${sum[bytes_$name]}"
done
connections=$(grep -c '^connection ' "$work/client.log")
expect "connections: the proxy's count" "$(figure clients accepted)" "$connections"
ended_well=$((connections - failed + sum[refused]))
expect "connections that ended well: the proxy's count" "$(figure clients served)" $ended_well
expect "requests: the proxy's count" "$(figure requests requests)" $((answered + failed))
expect "failures that the proxy told: its count" "$(figure requests refused)" "${sum[refused]}"
expect "requests that found no backend" "$(figure requests no_backend)" 0
expect "lines missing in the proxy's log" "$(figure requests log_dropped)" 0
expect "links still leased" "$(figure links leased)" 0

read -r again share < <(awk -v victim="$victim" -v back="$back_at" '
    $1 == "ok" && $4 > back { all++; if ($3 == victim && n++ == 0) after = $4 - back }
    END { if (n > 0) printf "%.3f %.6f\n", after, n / all; else print "null 0" }' "$work/client.log")
[ "$again" != null ] || problem "the dead backend had no traffic again"
ratio()
{
    awk -v part="$1" -v whole="$2" 'BEGIN { printf "%.6f", (whole > 0 ? part / whole : 0) }'
}
holds()
{
    awk "BEGIN { exit !($1) }"
}
shares=
for name in a b c; do
    shares+=", \"$name\": $(ratio "${sum[answered_$name]}" $answered)"
done
spread=$(ratio "$spread_most" "$spread_least")
holds "$spread >= 1 && $spread <= 1.1" || problem "the backends that lived had unequal shares: $spread"
opened=$(figure links opened)
a_request=$(ratio "$opened" $answered)
holds "$a_request > 0 && $a_request < $max_opened" ||
    problem "connections to backends are not reused: $a_request a request"

echo
echo "$answered requests answered over $connections connections of clients and $opened to backends"
echo "connections a request: $a_request; with fewer than $max_opened they are reused"
echo "the death of backend $victim hit $((saved + failed)) requests: $saved were saved by a second try, $failed failed"
awk '$1 == "failed" { $1 = $2 = $3 = $4 = ""; print }' "$work/client.log" | sort | uniq -c
echo "shares ${shares#, }; of those that lived the most had $spread times the requests of the least"
echo "backend $victim had traffic again $again s after it was back, and a share of $share since"
[ $problems = 0 ] && echo "client, proxy and backends agree" || echo "$problems things did not hold"
echo "{\"held\": $([ $problems = 0 ] && echo true || echo false), \"answered\": $answered, \"failed\": $failed," \
    "\"saved\": $saved, \"logged_twice\": ${sum[twice]}, \"connections\": $connections, \"links_opened\": $opened," \
    "\"connections_a_request\": $a_request, \"shares\": {${shares#, }}, \"spread\": $spread," \
    "\"killed\": \"$victim\", \"traffic_again_after\": $again, \"share_since\": $share}"
[ $problems = 0 ]
