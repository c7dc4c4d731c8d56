# crowd.sh - backends that die and come back, under a thousand clients.
# shellcheck shell=bash disable=SC2034,SC2154
crowd=(a_thousand_clients_outlive_killed_backends who_cannot_be_served_is_closed_at_once)

backends_in_state()
{
    [ "$(page | awk -v state="$1" '$1 == "backend" { for (i = 3; i < NF; i++) if ($i == state && $(i + 1) > 0) n++ } END { print n + 0 }')" = "$2" ]
}

# has_requests NAME LINES: the backend has logged more than so many.
has_requests()
{
    [ "$(wc -l <"$dir/$1.log")" -gt "$2" ]
}

# revive NAME: at the same address, with the same log. It must have traffic again.
revive()
{
    local before
    before=$(wc -l <"$dir/$1.log")
    start_backend "$1" "${address[$1]}" --body 1000 --delay 0.1
    await 10 "$1 has traffic again" has_requests "$1" "$before"
}

# kill_and_revive NAME...: all of them at once, back when lbproxy has noticed.
kill_and_revive()
{
    local name
    for name in "$@"; do
        kill_now "$name"
    done
    await 10 "lbproxy notices that $# backends are gone" backends_in_state backoff $#
    for name in "$@"; do
        revive "$name"
    done
    await 10 "lbproxy serves by all backends again" backends_in_state backoff 0
}

# The lines of client and backends, by request: each answer came from the backend that logged the request, once; what a
# backend has logged besides, the client knows as failed.
requests_agree()
{
    local name
    awk '$1 == "ok" { print $2, $3 }' "$dir/client.log" | sort >"$dir/answered"
    awk '$1 == "failed" { print $2 }' "$dir/client.log" | sort >"$dir/failed"
    for name in a b c; do
        awk -v name=$name '{ print $1, name }' "$dir/$name.log"
    done | sort >"$dir/logged"
    expect "requests logged twice" "$(uniq -d "$dir/logged" | wc -l)" 0
    expect "requests answered by a backend that has not logged them" "$(comm -23 "$dir/answered" "$dir/logged" | wc -l)" 0
    expect "requests logged, not answered, and not known as failed" \
        "$(comm -13 "$dir/answered" "$dir/logged" | cut -d' ' -f1 | comm -23 - "$dir/failed" | wc -l)" 0
}

# The totals of client and proxy: connections to the last, bytes but for those of requests that failed.
totals_agree()
{
    local connections sent received failed
    read -r connections sent received < <(awk '$1 == "connection" { n++; sent += $3; received += $4 }
        END { print n + 0, sent + 0, received + 0 }' "$dir/client.log")
    failed=$(wc -l <"$dir/failed")
    expect "clients accepted" "$(figure clients accepted)" "$connections"
    expect "clients by how they ended" "$(page | awk '$1 == "clients" { print $7 + $9 + $11 + $13 + $15 }')" "$connections"
    expect "clients that got a link" "$(sum_of leases)" $((connections - $(figure clients unserved)))
    expect_range "bytes passed to backends" "$(sum_of bytes_to)" $((sent - failed * 200)) "$sent"
    expect_range "bytes passed to clients" "$(sum_of bytes_from)" "$received" $((received + failed * 1300))
}

descriptors_but_links_are()
{
    [ $(($(descriptors_of proxy) - $(figure links open))) = "$1" ]
}

# Kills one backend after the other while the clients ask, then all at once.
a_thousand_clients_outlive_killed_backends()
{
    local name descriptors
    for name in a b c; do
        start_backend $name 127.0.0.1:0 --body 1000 --delay 0.1
    done
    start_proxy --backend "${address[a]}" --backend "${address[b]}" --backend "${address[c]}"
    descriptors=$(($(descriptors_of proxy) - $(figure links open)))
    launch client "$bin/demo_client" --to "${address[proxy]}" --seconds 8 --connections 1000 --requests 10 --timeout 6 \
        --log "$dir/client.log"
    for name in a b c; do
        await 10 "$name has traffic" has_requests $name 100
    done
    kill_and_revive a
    kill_and_revive b
    kill_and_revive c
    kill_and_revive a b c
    is_over client && fail "the client was over before the last backend was back"
    status_of client 30
    expect "the client's exit status: $(cat "$dir/client.err")" "$status" 0
    expect_quiet
    expect "requests that nobody ended within their time" "$(grep -c '^failed .* timed out$' "$dir/client.log")" 0
    requests_agree
    totals_agree
    expect_range "links left: one is kept up a backend" "$(figure links open)" 0 3
    # the look that tells of links has a descriptor too, until lbproxy sees it hang up: a leak would stay
    await 5 "no descriptor is left but for links" descriptors_but_links_are "$descriptors"
    echo "note: $(wc -l <"$dir/answered") requests answered, $(wc -l <"$dir/failed") failed"
    end_proxy
}

who_cannot_be_served_is_closed_at_once()
{
    local n begin
    start_backend gone 127.0.0.1:0
    start_proxy --backend "${address[gone]}" --backend "unix:$dir/none.sock"
    kill_now gone
    for n in {1..20}; do
        connect "$n" "${address[proxy]}"
    done
    begin=$(milliseconds)
    for n in {1..20}; do
        hear "$n" 5
        expect_range "what read says of client $n: 1 closed, above 128 still waiting" $? 1 1
    done
    expect_range "milliseconds until 20 clients were closed" $(($(milliseconds) - begin)) 0 1000
    expect "clients that got no link" "$(figure clients unserved)" 20
    page_has 'connection refused' || fail "the page does not say why: $(page)"
    start_backend gone "${address[gone]}"
    await 10 "lbproxy serves again" curl -fs --max-time 1 -o "$dir/answer" "http://${address[proxy]}/"
    end_proxy
}
