# case.sh - what each case stands on: programs that end with it, waiting with a deadline, questions to the proxy.
#
# A case is a function; run_case gives it a process and a folder of its own ($dir). It passes by returning, and fails
# by saying why (fail). Nothing waits without a deadline, and nothing is awaited by sleeping so long.
# shellcheck shell=bash disable=SC2154,SC2093,SC1083 # bin and work are run.sh's; exec {name[i]} opens and closes descriptors

declare -A pid=() address=() # of the programs started in this case, by name

fail()
{
    echo "$*" >&2
    exit 1
}

# expect WHAT SEEN WANTED
expect()
{
    [ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

# expect_range WHAT SEEN LEAST MOST, in whole numbers
expect_range()
{
    { [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; } || fail "$1: $2, expected $3 to $4"
}

# await SECONDS WHAT COMMAND...: runs the command again and again until it succeeds.
await()
{
    local due=$((${EPOCHREALTIME/./} + $1 * 1000000)) what=$2
    shift 2
    until "$@"; do
        [ "${EPOCHREALTIME/./}" -lt $due ] || fail "not within its time: $what"
        sleep 0.01
    done
}

# milliseconds: of wall time, to measure with.
milliseconds()
{
    echo $((${EPOCHREALTIME/./} / 1000))
}

# ---- programs ----

is_over()
{
    ! kill -0 "${pid[$1]}" 2>/dev/null
}

# launch NAME PROGRAM OPTION...: in the background; its output goes to $dir/NAME.out and $dir/NAME.err.
launch()
{
    local name=$1
    shift
    : >"$dir/$name.out" # now, so that nobody reads what an earlier one of that name has said
    "$@" >"$dir/$name.out" 2>"$dir/$name.err" </dev/null &
    pid[$name]=$!
}

# has_said NAME WORDS: the line "WORDS ADDR" is there; ADDR is kept in `said`.
has_said()
{
    said=$(sed -n "s/^$2 //p" "$dir/$1.out")
    [ -n "$said" ] && return
    is_over "$1" && fail "$1 does not start: $(cat "$dir/$1.err")"
    return 1
}

# start NAME PROGRAM OPTION...: launch, then its address, from its line "listening on", in address[NAME].
start()
{
    launch "$@"
    await 10 "$1 listens" has_said "$1" "listening on"
    address[$1]=$said
}

# start_backend NAME ADDR [OPTION...]: examples/backend, which logs the ids it gets to $dir/NAME.log.
start_backend()
{
    start "$1" "$bin/backend" --listen "$2" --name "$1" --log "$dir/$1.log" "${@:3}"
}

# start_on_free_port NAME READY COMMAND...: for servers that cannot let the system pick. PORT in the command becomes a
# port that nothing outgoing ever gets; a server that cannot have it ends, and gets another. READY: a command that
# succeeds when the server in `address[NAME]` answers.
start_on_free_port()
{
    local name=$1 ready=$2 port
    shift 2
    for _ in {1..20}; do
        port=$((10000 + RANDOM % 20000))
        address[$name]=127.0.0.1:$port
        launch "$name" "${@//PORT/$port}"
        await 10 "$name is ready or over" is_ready_or_over "$name" "$ready"
        is_over "$name" || return 0
    done
    fail "$name finds no port: $(cat "$dir/$name.err" "$dir/$name.out")"
}

is_ready_or_over()
{
    is_over "$1" || "$2" "${address[$1]}" "${pid[$1]}"
}

# status_of NAME: waits for its end; its exit status is kept in `status`.
status_of()
{
    await "${2:-10}" "$1 ends" is_over "$1"
    wait "${pid[$1]}"
    status=$?
    unset "pid[$1]"
}

kill_now()
{
    kill -9 "${pid[$1]}"
    status_of "$1" 2>/dev/null # where bash says "Killed"
}

end_case()
{
    [ ${#pid[@]} = 0 ] || kill -9 "${pid[@]}" 2>/dev/null
    wait 2>/dev/null
}

# run_case NAME: in a process of its own. Prints a line, with what the case says as "note: ", and all it said where it
# fails.
run_case()
{
    local name=$1 begin
    begin=$(milliseconds)
    dir=$work/$name
    mkdir "$dir"
    if ( trap end_case EXIT; trap 'exit 1' TERM INT HUP; "$name" ) >"$dir.said" 2>&1; then
        echo "passed  ${name//_/ } ($(($(milliseconds) - begin)) ms)$(sed -n 's/^note:/,/p' "$dir.said")"
        touch "$dir.passed"
    else
        echo "FAILED  ${name//_/ } ($(($(milliseconds) - begin)) ms)"
        sed 's/^/        /' "$dir.said"
        touch "$dir.failed"
    fi
}

# ---- the proxy ----

mode=tcp # of start_proxy; those who want http say so

# start_proxy OPTION...: listens where the system picks, with a status page.
start_proxy()
{
    start proxy "$bin/lbproxy" --mode $mode --listen 127.0.0.1:0 --status 127.0.0.1:0 "$@"
    await 10 "lbproxy's status page" has_said proxy "status on"
    status_address=$said
}

# end_proxy: by SIGTERM, while nothing is under way: it ends well and has never complained (a sanitizer would, here).
end_proxy()
{
    kill -TERM "${pid[proxy]}"
    status_of proxy
    expect "lbproxy's exit status" "$status" 0
    expect "what lbproxy said to stderr" "$(cat "$dir/proxy.err")" ""
}

is_sanitized()
{
    grep -q __asan_init "$bin/lbproxy"
}

# page: the status page.
page()
{
    curl -s --max-time 10 "http://$status_address/"
}

# figure LINE NAME: a figure of the page, by how its line begins and the name before it: figure links open
figure()
{
    page | awk -v line="$1 " -v name="$2" '
        index($0, line) == 1 { for (i = split(line, words, " ") + 1; i < NF; i++) if ($i == name) { print $(i + 1); exit } }'
}

# sum_of NAME: a figure summed over all backends.
sum_of()
{
    page | awk -v name="$1" '$1 == "backend" { for (i = 3; i < NF; i++) if ($i == name) sum += $(i + 1) } END { print sum + 0 }'
}

figure_is()
{
    [ "$(figure "$1" "$2")" = "$3" ]
}

page_has()
{
    page | grep -q -- "$1"
}

# expect_quiet: no client is there, and nothing is held or waited for.
expect_quiet()
{
    await 10 "no client is left" figure_is "clients" open 0
    expect "buffers in use" "$(figure clients buffers)" 0
    expect "links leased" "$(figure links leased)" 0
    expect "clients waiting for a link" "$(figure links waiting)" 0
    expect "links held, as lbproxy counts" "$(sum_of held)" 0
}

descriptors_of()
{
    local all=(/proc/"${pid[$1]}"/fd/*)
    echo ${#all[@]}
}

# ---- clients of bash's own, for servers that answer a line with a line ----

declare -A line # descriptors of open connections, by name

connect()
{
    local fd
    exec {fd}<>"/dev/tcp/${2%:*}/${2##*:}" || fail "$1 cannot connect to $2"
    line[$1]=$fd
}

hang_up()
{
    exec {line["$1"]}>&-
    unset "line[$1]"
}

say()
{
    printf '%s\r\n' "$2" >&"${line[$1]}"
}

# hear NAME [SECONDS]: prints the next line. Fails where it does not come: 1 closed, above 128 out of time.
hear()
{
    local text
    IFS= read -r -t "${2:-5}" -u "${line[$1]}" text 2>/dev/null || return
    echo "${text%$'\r'}"
}

# is_served NAME: asks redis for an answer.
is_served()
{
    say "$1" PING
    [ "$(hear "$1")" = +PONG ]
}

# ---- real servers ----

start_redis()
{
    start_on_free_port redis answers_a_ping redis-server --port PORT --bind 127.0.0.1 --save '' --appendonly no \
        --unixsocket "$dir/redis.sock" --maxclients 4000
}

answers_a_ping()
{
    [ "$(redis-cli -h "${1%:*}" -p "${1##*:}" INFO server 2>/dev/null | sed -n 's/^process_id:\([0-9]*\).*/\1/p')" = "$2" ]
}

# How often redis ran a command: redis_calls ping
redis_calls()
{
    redis-cli -s "$dir/redis.sock" INFO commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}

# run_nginx ADDR: one process in the foreground, all its files in $dir. A page of its own tells its process id.
run_nginx()
{
    local paths
    paths=$(printf '%s_temp_path tmp; ' client_body proxy fastcgi uwsgi scgi)
    cat >"$dir/nginx.conf" <<-END
	daemon off; master_process off; pid nginx.pid; error_log error.log; worker_rlimit_nofile 4096;
	events { worker_connections 2048; }
	http {
	    $paths
	    access_log off; keepalive_requests 100000000; root www;
	    server {
	        listen $1; listen unix:$dir/nginx.sock;
	        location = /pid { return 200 \$pid; }
	        location = /counts { stub_status; }
	    }
	}
	END
    exec nginx -p "$dir" -e error.log -c nginx.conf
}

start_nginx()
{
    mkdir "$dir/www"
    head -c 10000000 /dev/urandom >"$dir/www/large"
    head -c 1000 /dev/urandom >"$dir/www/small"
    start_on_free_port nginx answers_with_its_pid run_nginx 127.0.0.1:PORT
}

answers_with_its_pid()
{
    [ "$(curl -s --max-time 2 "http://$1/pid")" = "$2" ]
}

# What nginx has counted, asked without lbproxy: connections accepted, and requests, this one included.
nginx_counts()
{
    curl -s --max-time 2 --unix-socket "$dir/nginx.sock" http://nginx/counts | awk 'NR == 3 { print $1, $3 }'
}
