# load.sh - lbproxy in http mode under more of real clients: python's http.client, wrk, ab, hey, WebSocket; bodies larger
# than any memory; the storm. The servers are real.sh's.
# shellcheck shell=bash disable=SC2034,SC2154
load=(http_python_client_before_all
    http_load_before_nginx http_load_before_node http_load_before_apache http_load_before_python
    http_websocket_echoes_a_thousand_messages
    http_a_huge_upload_takes_no_memory http_a_huge_upload_in_chunks_takes_no_memory http_a_huge_download_takes_no_memory
    http_a_storm_of_requests)
huge=5368709120 # 5 GiB

# ---- python's http.client ----

http_python_client_before_all()
{
    local name words asked=0
    make_files
    for name in full_nginx:put node:echo:put apache:echo:put python:echo:put plain_python; do
        "start_${name%%:*}"
        start_http_proxy
        # shellcheck disable=SC2086
        words=$(python3 tests/proxy/real/client.py "${address[proxy]}" "$dir/www" 3 ${name//:/ } 2>&1) ||
            fail "before ${name%%:*}: $words"
        await 10 "a line a request" log_has "$words"
        expect "outcomes but ok" "$(awk '$12 != "ok"' "$dir/access")" ""
        expect "lines in the log" "$(wc -l <"$dir/access")" "$words"
        asked=$((asked + words))
        ends_quietly
        kill_now server
        rm "$dir/access"
    done
    echo "note: $asked requests"
}

# ---- wrk, ab and hey ----

wrk_loads()
{
    local right
    wrk -t 2 -c 20 -d 1s --timeout 10s -s tests/proxy/real/check.lua "$url/small" -- "$dir/www/small" >"$dir/wrk" ||
        fail "wrk: exit status $?"
    right=$(sed -n 's/^right \([0-9]*\) wrong 0 errors 0$/\1/p' "$dir/wrk")
    [ "${right:-0}" -gt 50 ] || fail "wrk: $(cat "$dir/wrk")"
    await 10 "no client is left" figure_is clients open 0
    # its connections end in the midst of their last requests
    expect_range "lines for wrk" "$(wc -l <"$dir/access")" "$right" $((right + 20))
    expect_range "requests that wrk has left" "$(awk '$12 == "client_gone"' "$dir/access" | wc -l)" 0 20
    expect "other outcomes" "$(awk '$12 != "ok" && $12 != "client_gone"' "$dir/access" | head -3)" ""
    echo "note: wrk $right requests"
}

ab_says()
{
    expect "ab's $1 ($(cat "$dir/ab"))" "$(sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$dir/ab")" "$2"
}

# ab_loads REQUESTS [-k]
ab_loads()
{
    ab "${@:2}" -q -c 20 -n "$1" "$url/small" >"$dir/ab" 2>&1 || fail "ab: $(cat "$dir/ab")"
    ab_says "Complete requests" "$1"
    ab_says "Failed requests" 0
    ab_says "Non-2xx responses" ""
    ab_says "Document Length" 1000
    ab_says "HTML transferred" $(($1 * 1000))
    [ $# = 1 ] || ab_says "Keep-Alive requests" "$1"
}

# hey_loads REQUESTS [OPTION...]
hey_loads()
{
    hey "${@:2}" -disable-compression -n "$1" -c 20 "$url/small" >"$dir/hey" 2>&1 || fail "hey: $(cat "$dir/hey")"
    grep -q "^ *\[200\]	$1 responses" "$dir/hey" || fail "hey: $(cat "$dir/hey")"
    grep -q "^ *Size/request:	1000 bytes" "$dir/hey" || fail "hey: $(cat "$dir/hey")"
    ! grep -q 'Error distribution' "$dir/hey" || fail "hey: $(cat "$dir/hey")"
}

# load_is_counted REQUESTS: so many more lines, all ok.
load_is_counted()
{
    await 10 "$1 lines" log_has "$1"
    expect "lines in the log" "$(wc -l <"$dir/access")" "$1"
    expect "outcomes but ok" "$(awk '$12 != "ok" || $5 != 200 || $6 != 1000' "$dir/access" | head -3)" ""
}

# loads REQUESTS
loads()
{
    start_http_proxy --threads 2
    wrk_loads
    : >"$dir/access"
    ab_loads "$1" -k
    ab_loads "$1"
    hey_loads "$1"
    hey_loads "$1" -disable-keepalive
    load_is_counted $(($1 * 4))
    ends_quietly
}

http_load_before_nginx()
{
    make_files
    start_full_nginx
    loads 4000
}

http_load_before_node()
{
    make_files
    start_node
    loads 2000
}

http_load_before_apache()
{
    make_files
    start_apache
    loads 4000
}

http_load_before_python()
{
    make_files
    start_python
    loads 500
}

# ---- WebSocket ----

# The python that has the library: Debian's own, where another stands before it in PATH.
find_python_with_websockets()
{
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import websockets' 2>/dev/null && return
    done
    fail "no python3 with websockets"
}

http_websocket_echoes_a_thousand_messages()
{
    find_python_with_websockets
    start server "$python" tests/proxy/real/websocket.py serve
    start_http_proxy
    timeout 90 "$python" tests/proxy/real/websocket.py ask "${address[proxy]}" 4 1000 >"$dir/ask" 2>&1 ||
        fail "the client: $(cat "$dir/ask")"
    await 10 "a line a connection" log_has 4
    expect "lines of the log" "$(awk '{ print $3, $5, $12 }' "$dir/access" | sort | uniq -c | sed 's/^ *//')" \
        "4 GET 101 upgraded"
    await 10 "the server has seen four ends" has_lines server 5
    expect "ends as the server saw them" "$(grep -c '^closed 1000 after 1000$' "$dir/server.out")" 4
    ends_quietly
}

has_lines()
{
    [ "$(wc -l <"$dir/$1.out")" -ge "$2" ]
}

# ---- bodies larger than any memory ----

# streams get|put length|chunked
streams()
{
    local begin
    start server "$bin/http_stream" serve
    start_http_proxy
    echo 5 >"/proc/${pid[proxy]}/clear_refs" # the peak of its memory is from now on
    begin=$(milliseconds)
    timeout 170 "$bin/http_stream" "$1" "${address[proxy]}" "$2" $huge 2>"$dir/stream.err" ||
        fail "$1, $2: $(cat "$dir/stream.err")"
    if is_sanitized; then
        echo "note: memory is not measured in a sanitized build"
    else
        peak=$(awk '$1 == "VmHWM:" { print $2 }' "/proc/${pid[proxy]}/status")
        echo "note: $((huge * 1000 / 1048576 / ($(milliseconds) - begin))) MiB/s, $peak KiB of memory at most"
        expect_range "KiB of lbproxy's memory" "$peak" 1 20480
    fi
    ends_quietly
    kill -9 "${pid[server]}" 2>/dev/null
    expect "the log's outcome" "$(awk '{ print $5, $12 }' "$dir/access")" "200 ok"
}

http_a_huge_upload_takes_no_memory()
{
    streams put length
}

http_a_huge_upload_in_chunks_takes_no_memory()
{
    streams put chunked
}

http_a_huge_download_takes_no_memory()
{
    streams get length
    expect "bytes in the log" "$(awk '{ print $6 }' "$dir/access")" $huge
}

# ---- the storm ----

http_a_storm_of_requests()
{
    timeout 170 tests/proxy/storm/storm.sh "$bin" --requests 20000 >"$dir/storm" 2>&1 ||
        fail "exit status $?: $(cat "$dir/storm")"
    echo "note: $(grep seed "$dir/storm"); $(tail -n 1 "$dir/storm")"
}
