# life.sh - lbproxy's beginning and end: its options, its page, its signals.
# shellcheck shell=bash disable=SC2034,SC2154
life=(each_bad_option_is_named_in_a_line help_version_and_manual_tell_of_each_option the_page_says_how_things_are
    sigterm_lets_clients_finish sigterm_ends_by_the_drain_timeout sigint_twice_ends_at_once quiet_clients_are_closed)

# refuses WORDS OPTION...: exit status 2, and one line to stderr that names these.
refuses()
{
    local words=$1 said status
    shift
    said=$(timeout 5 "$bin/lbproxy" "$@" 2>&1 >/dev/null)
    status=$?
    expect "exit status of lbproxy $* ($said)" "$status" 2
    expect "lines that lbproxy $* said" "$(wc -l <<<"$said")" 1
    case $said in
    "lbproxy: $words"*) ;;
    *) fail "lbproxy $*: said '$said', expected 'lbproxy: $words...'" ;;
    esac
}

each_bad_option_is_named_in_a_line()
{
    local fine=(--listen 127.0.0.1:0 --backend 127.0.0.1:9) many=() n
    for n in {1..257}; do
        many+=(--backend "127.0.0.1:$n")
    done
    refuses "--listen ADDR is missing" --backend 127.0.0.1:9
    refuses "--backend ADDR is missing" --listen 127.0.0.1:0
    refuses "--listen: '127.0.0.1'" --listen 127.0.0.1 --backend 127.0.0.1:9
    refuses "--listen: '127.0.0.1:65536'" --listen 127.0.0.1:65536 --backend 127.0.0.1:9
    refuses "--listen: 'unix:'" --listen unix: --backend 127.0.0.1:9
    refuses "--listen: ''" --listen '' --backend 127.0.0.1:9
    refuses "--backend: '127.0.0.1:0'" "${fine[@]}" --backend 127.0.0.1:0
    refuses "--backend: 'localhost:80'" "${fine[@]}" --backend localhost:80
    refuses "--backend: '127.0.0.1:09'" "${fine[@]}" --backend 127.0.0.1:09
    refuses "--backend: '127.0.0.1:9' was given before" "${fine[@]}" --backend 127.0.0.1:9
    refuses "--backend: '127.0.0.1:257': more than 256" --listen 127.0.0.1:0 "${many[@]}"
    refuses "--policy: 'random'" "${fine[@]}" --policy random
    refuses "--mode: 'ftp'" "${fine[@]}" --mode ftp
    refuses "--max-header: '1023'" "${fine[@]}" --max-header 1023
    refuses "--max-header: '65537'" "${fine[@]}" --max-header 65537
    refuses "--max-waiting: 1 is less" "${fine[@]}" --max-waiting 1 --threads 2
    refuses "--header-timeout: '0'" "${fine[@]}" --header-timeout 0
    refuses "--body-timeout: 'x'" "${fine[@]}" --body-timeout x
    refuses "--answer-timeout: '-1'" "${fine[@]}" --answer-timeout -1
    refuses "--keepalive-timeout: '86401'" "${fine[@]}" --keepalive-timeout 86401
    refuses "--threads: '0'" "${fine[@]}" --threads 0
    refuses "--threads: '257'" "${fine[@]}" --threads 257
    refuses "--threads: '2x'" "${fine[@]}" --threads 2x
    refuses "--max-clients: '-1'" "${fine[@]}" --max-clients -1
    refuses "--max-clients: ''" "${fine[@]}" --max-clients ''
    refuses "--max-clients: 1 is less" "${fine[@]}" --max-clients 1 --threads 2
    refuses "--max-links: ' 5'" "${fine[@]}" --max-links ' 5'
    refuses "--max-links: 3 is less" "${fine[@]}" --max-links 3 --threads 4
    refuses "--connect-timeout: '0'" "${fine[@]}" --connect-timeout 0
    refuses "--connect-timeout: 'nan'" "${fine[@]}" --connect-timeout nan
    refuses "--idle-timeout: '-1'" "${fine[@]}" --idle-timeout -1
    refuses "--idle-timeout: '5 s'" "${fine[@]}" --idle-timeout '5 s'
    refuses "--drain-timeout: 'inf'" "${fine[@]}" --drain-timeout inf
    refuses "--status: '[::1'" "${fine[@]}" --status '[::1'
    refuses "unrecognized option '--bakend'" "${fine[@]}" --bakend 127.0.0.1:9
    refuses "option '--status' requires an argument" "${fine[@]}" --status
    refuses "'backend': options alone are expected" "${fine[@]}" backend
    address_in_use_is_named
}

address_in_use_is_named()
{
    local said
    start_proxy --backend 127.0.0.1:9
    said=$(timeout 5 "$bin/lbproxy" --listen 127.0.0.1:0 --access-log "$dir/none/log" --backend 127.0.0.1:9 2>&1 >/dev/null)
    expect "exit status where the log cannot be" $? 1
    expect "what is said there" "$said" "lbproxy: --access-log: $dir/none/log: No such file or directory"
    said=$(timeout 5 "$bin/lbproxy" --listen "${address[proxy]}" --backend 127.0.0.1:9 2>&1)
    expect "exit status where another listens" $? 1
    expect "what is said there" "$said" "lbproxy: --listen: ${address[proxy]}: Address already in use"
    said=$(timeout 5 "$bin/lbproxy" --listen 127.0.0.1:0 --status "$status_address" --backend 127.0.0.1:9 2>&1 >/dev/null)
    expect "exit status where another has the page's address" $? 1
    expect "what is said there" "$said" "lbproxy: --status: $status_address: Address already in use"
    end_proxy
}

help_version_and_manual_tell_of_each_option()
{
    local option
    "$bin/lbproxy" --help >"$dir/help" || fail "--help: exit status $?"
    for option in $(sed -n 's/^  --\([a-z-]*\).*/\1/p' "$dir/help") help version; do
        grep -q "^\.It Fl -$option\b" docs/lbproxy.1 || fail "the manual page does not tell of --$option"
    done
    for option in listen backend policy mode threads max-clients max-links max-waiting max-header connect-timeout \
        header-timeout body-timeout answer-timeout keepalive-timeout idle-timeout drain-timeout access-log status; do
        grep -q -- "^  --$option " "$dir/help" || fail "--help does not tell of --$option"
    done
    expect "what --version says" "$("$bin/lbproxy" --version | sed 's/[0-9]*\.[0-9]*\.[0-9]*$/N/')" "lbproxy N"
}

the_page_says_how_things_are()
{
    local n
    start_redis
    start_proxy --backend "${address[redis]}" --backend "unix:$dir/none.sock" --policy pick_first --threads 2
    page_has '^lbproxy [0-9.]* mode tcp policy pick_first threads 2 up [0-9.]*$' || fail "no first line: $(page)"
    expect "links before the first client" "$(figure links open)" 0
    for n in 1 2; do
        connect $n "${address[proxy]}"
        is_served $n || fail "client $n is not served"
    done
    expect "clients open" "$(figure clients open)" 2
    expect "links leased" "$(figure links leased)" 2
    expect "clients at redis" "$(figure "backend ${address[redis]}" held)" 2
    expect "links READY at redis" "$(figure "backend ${address[redis]}" ready)" 2
    expect "bytes to redis" "$(figure "backend ${address[redis]}" bytes_to)" 12
    expect "bytes from redis" "$(figure "backend ${address[redis]}" bytes_from)" 14
    expect "clients at the other" "$(figure "backend unix:$dir/none.sock" leases)" 0
    page_has '^thread 0: clients' || fail "no words about thread 0: $(page)"
    page_has '^thread 1: clients' || fail "no words about thread 1: $(page)"
    for n in {3..42}; do # more at once than are answered at once: the others wait at the door
        connect "$n" "$status_address"
        say "$n" $'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
    done
    for n in {3..42}; do
        case $(hear "$n") in "HTTP/1.1 200"*) hang_up "$n" ;; *) fail "look $n gets no page" ;; esac
    done
    hang_up 1
    hang_up 2
    expect_quiet
    expect "clients served" "$(figure clients served)" 2
    end_proxy
}

# ---- signals ----

# start_with_client OPTION...: a proxy and one client in the middle of things.
start_with_client()
{
    start_redis
    start_proxy --backend "${address[redis]}" "$@"
    connect client "${address[proxy]}"
    is_served client || fail "the client is not served"
}

cannot_connect()
{
    ! (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null
}

sigterm_lets_clients_finish()
{
    start_with_client
    kill -TERM "${pid[proxy]}"
    await 5 "lbproxy accepts no more" cannot_connect "${address[proxy]}"
    is_served client || fail "the client is not served to its end"
    page_has ' draining$' || fail "the page does not say that lbproxy drains: $(page)"
    kill -TERM "${pid[proxy]}" # once more changes nothing
    is_served client || fail "the client is not served to its end after a second SIGTERM"
    hang_up client
    status_of proxy 5
    expect "exit status" "$status" 0
    expect "what lbproxy said to stderr" "$(cat "$dir/proxy.err")" ""
}

sigterm_ends_by_the_drain_timeout()
{
    local begin
    start_with_client --drain-timeout 0.5 --threads 2
    begin=$(milliseconds)
    kill -TERM "${pid[proxy]}"
    status_of proxy 5
    expect_range "milliseconds until the end" $(($(milliseconds) - begin)) 450 2500
    expect "exit status" "$status" 0
    hear client
    expect "what read says of the client: 1 closed" $? 1
}

sigint_twice_ends_at_once()
{
    start_with_client --threads 2
    kill -INT "${pid[proxy]}"
    await 5 "lbproxy accepts no more" cannot_connect "${address[proxy]}"
    is_served client || fail "the client is not served after the first SIGINT"
    kill -INT "${pid[proxy]}"
    status_of proxy 2
    expect "exit status" "$status" 130
    hear client
    expect "what read says of the client: 1 closed" $? 1
    expect "what lbproxy said to stderr" "$(cat "$dir/proxy.err")" ""
}

quiet_clients_are_closed()
{
    local begin
    start_with_client --idle-timeout 0.5
    begin=$(milliseconds)
    hear client 5
    expect "what read says of the client: 1 closed" $? 1
    expect_range "milliseconds until the quiet client was closed" $(($(milliseconds) - begin)) 400 2500
    expect "clients ended for being quiet" "$(figure clients idle)" 1
    expect_quiet
    end_proxy
}
