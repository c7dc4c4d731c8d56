# programs.sh - real servers behind lbproxy, and real clients before it.
# shellcheck shell=bash disable=SC2034,SC2154
programs=(curl_gets_what_nginx_has wrk_and_nginx_count_the_same redis_benchmark_and_redis_count_the_same
    unix_sockets_serve_on_either_side quickstart_and_fanout_talk_to_redis)

# all_equal FILE COUNT COPY...: so many copies, each the same as the file.
all_equal()
{
    local file=$1 count=$2 copy
    shift 2
    expect "copies of $file" $# "$count"
    for copy in "$@"; do
        cmp "$file" "$copy" || fail "$copy is not what nginx has"
    done
}

curl_gets_what_nginx_has()
{
    local url
    start_nginx
    start_proxy --backend "${address[nginx]}"
    url=http://${address[proxy]}
    mkdir "$dir/got"
    curl -fsS --max-time 20 "$url/small" -o "$dir/got/one" || fail "curl: exit status $?"
    all_equal "$dir/www/small" 1 "$dir/got/one"
    curl -fsS --max-time 30 -Z --parallel-max 20 "$url/large?[1-20]" -o "$dir/got/large_#1" || fail "curl -Z: exit status $?"
    all_equal "$dir/www/large" 20 "$dir"/got/large_*
    curl -sS --max-time 20 --limit-rate 20M "$url/large" -o "$dir/got/slow" || fail "curl --limit-rate: exit status $?"
    all_equal "$dir/www/large" 1 "$dir/got/slow"
    expect "the status of what is not there" "$(curl -s --max-time 5 -o "$dir/got/none" -w '%{http_code}' "$url/none")" 404
    expect_quiet
    expect "clients that got no link" "$(figure clients unserved)" 0
    end_proxy
}

# wrk's connections end in the middle of their last requests: nginx has counted those, wrk has not.
wrk_and_nginx_count_the_same()
{
    local connections=50 answered accepted requests accepted_before requests_before
    start_nginx
    start_proxy --backend "${address[nginx]}" --threads 2
    read -r accepted_before requests_before < <(nginx_counts)
    wrk -t 2 -c $connections -d 3s --timeout 5s "http://${address[proxy]}/small" >"$dir/wrk" || fail "wrk: exit status $?"
    cat "$dir/wrk"
    grep -E 'Socket errors|Non-2xx' "$dir/wrk" && fail "wrk met errors"
    answered=$(awk '$2 == "requests" { print $1 }' "$dir/wrk")
    [ "$answered" -gt 1000 ] || fail "wrk: $answered requests in 3 seconds"
    expect_quiet
    read -r accepted requests < <(nginx_counts)
    accepted=$((accepted - accepted_before - 1)) # but for this look itself
    requests=$((requests - requests_before - 1))
    expect "links that nginx has accepted" $accepted $(($(sum_of opened) - $(sum_of failed)))
    expect_range "requests that nginx has counted" $requests "$answered" $((answered + connections))
    expect_range "clients accepted by lbproxy" "$(figure clients accepted)" $connections $((connections + 1))
    end_proxy
}

redis_benchmark_and_redis_count_the_same()
{
    local at
    start_redis
    start_proxy --backend "${address[redis]}"
    at=(-h "${address[proxy]%:*}" -p "${address[proxy]##*:}")
    redis-benchmark "${at[@]}" -q -c 50 -n 20000 -t set,get >"$dir/plain" 2>&1 || fail "redis-benchmark: exit status $?"
    redis-benchmark "${at[@]}" -q -c 50 -n 100000 -P 16 -d 512 -t incr >"$dir/pipelined" 2>&1 ||
        fail "redis-benchmark -P 16: exit status $?"
    # long words, pipelined: both ways are full at once
    redis-benchmark "${at[@]}" -q -c 8 -n 2000 -P 8 ECHO "$(printf '%*s' 100000 '' | tr ' ' x)" >"$dir/long" 2>&1 ||
        fail "redis-benchmark ECHO: exit status $?"
    grep -ih error "$dir"/{plain,pipelined,long} && fail "redis-benchmark met errors"
    expect_range "SETs that redis has counted" "$(redis_calls set)" 20000 20050
    expect_range "GETs that redis has counted" "$(redis_calls get)" 20000 20050
    expect_range "INCRs that redis has counted" "$(redis_calls incr)" 100000 100800
    expect_range "ECHOs that redis has counted" "$(redis_calls echo)" 2000 2064
    expect "the counter that redis holds" "$(redis-cli -s "$dir/redis.sock" get 'counter:__rand_int__')" "$(redis_calls incr)"
    expect_quiet
    expect "clients that got no link" "$(figure clients unserved)" 0
    end_proxy
}

unix_sockets_serve_on_either_side()
{
    start_redis
    start proxy "$bin/lbproxy" --mode tcp --listen "unix:$dir/proxy.sock" --backend "unix:$dir/redis.sock" --status 127.0.0.1:0 --threads 2
    await 10 "lbproxy's status page" has_said proxy "status on"
    status_address=$said
    expect "the address that lbproxy says" "${address[proxy]}" "unix:$dir/proxy.sock"
    expect "redis's answer" "$(redis-cli -s "$dir/proxy.sock" ECHO hello)" hello
    redis-benchmark -s "$dir/proxy.sock" -q -c 20 -n 5000 -t ping_inline >"$dir/benchmark" 2>&1 || fail "redis-benchmark: exit status $?"
    expect_range "PINGs that redis has counted" "$(redis_calls ping)" 5000 5020
    expect_quiet
    end_proxy
    [ ! -e "$dir/proxy.sock" ] || fail "lbproxy has left its socket's file"
}

# The other example programs, as the README and their help say.
quickstart_and_fanout_talk_to_redis()
{
    start_redis
    expect "quickstart's answer" "$("$bin/quickstart" "${address[redis]}")" $'+PONG\r'
    expect "quickstart's answer to another line" "$("$bin/quickstart" "unix:$dir/redis.sock" 'STRLEN none')" $':0\r'
    "$bin/quickstart" "unix:$dir/none.sock" >"$dir/out" 2>"$dir/err"
    expect "quickstart's exit status where nobody listens" $? 1
    grep -q "^quickstart: unix:$dir/none.sock: " "$dir/err" || fail "quickstart does not say where: $(cat "$dir/err")"
    start fanout "$bin/fanout" --backend "${address[redis]}" --backend "unix:$dir/none.sock" --backend "unix:$dir/redis.sock"
    connect client "${address[fanout]}"
    say client PING
    expect "the first backend's answer" "$(hear client)" "${address[redis]}: +PONG"
    case $(hear client) in "unix:$dir/none.sock is missing: "*) ;; *) fail "the backend that is not there is not named" ;; esac
    expect "the third backend's answer" "$(hear client)" "unix:$dir/redis.sock: +PONG"
    expect "how many have answered" "$(hear client)" "2 of 3"
    kill -TERM "${pid[fanout]}"
    status_of fanout
    expect "fanout's exit status" "$status" 0
    expect "what fanout said to stderr" "$(cat "$dir/fanout.err")" ""
}
