# real.sh - lbproxy in http mode between curl and real servers: nginx, node, apache2 and python's http.server.
# shellcheck shell=bash disable=SC2034,SC2119,SC2120,SC2154
real=(http_curl_before_nginx http_curl_before_node http_curl_before_apache http_curl_before_python
    http_curl_before_plain_python)

# ---- servers: each has the files of $dir/www, POST /echo that answers with what came, and PUT below /put/ ----

make_files()
{
    mkdir -p "$dir/www/put" "$dir/got"
    head -c 10000000 /dev/urandom >"$dir/www/large"
    head -c 1000 /dev/urandom >"$dir/www/small"
    seq 1 20000 >"$dir/www/text"
    head -c 16 /dev/urandom | md5sum >"$dir/www/token" # tells a server of ours from another at the same port
}

answers_with_the_token()
{
    curl -s --max-time 2 "http://$1/token" | cmp -s - "$dir/www/token"
}

# nginx has no POST of its own: it takes the body and hands the request to itself, which tells its size.
run_full_nginx()
{
    local paths
    paths=$(printf '%s_temp_path tmp; ' client_body proxy fastcgi uwsgi scgi)
    cat >"$dir/nginx.conf" <<-END
	daemon off; master_process off; pid nginx.pid; error_log error.log; worker_rlimit_nofile 4096;
	events { worker_connections 2048; }
	http {
	    $paths
	    access_log off; keepalive_requests 100000000; root www; client_max_body_size 0;
	    gzip on; gzip_types *; gzip_proxied any;
	    server {
	        listen $1;
	        location /put/ { dav_methods PUT; }
	        location /echo { proxy_pass http://unix:$dir/nginx.sock:/take; proxy_http_version 1.1; }
	    }
	    server { listen unix:$dir/nginx.sock; location = /take { return 200 \$http_content_length; } }
	}
	END
    exec nginx -p "$dir" -e error.log -c nginx.conf
}

start_full_nginx()
{
    start_on_free_port server answers_with_the_token run_full_nginx 127.0.0.1:PORT
}

start_node()
{
    start server node tests/proxy/real/server.js "$dir/www"
}

start_python()
{
    start server python3 tests/proxy/real/server.py 1.1 "$dir/www"
}

start_plain_python()
{
    start server python3 tests/proxy/real/server.py 1.0 "$dir/www"
}

# One process and its threads, all its files in $dir. Root serves as nobody, who must then get there.
run_apache()
{
    local module
    if [ "$(id -u)" = 0 ]; then
        chmod o+rx "$work" "$dir"
        chown -R nobody "$dir/www"
    fi
    mkdir -p "$dir/apache"
    chmod 777 "$dir/apache"
    {
        for module in mpm_event authz_core reflector dav dav_fs deflate filter; do
            echo "LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so"
        done
        cat <<-END
	ServerName apache.test
	ServerRoot $dir/apache
	DefaultRuntimeDir $dir/apache
	PidFile $dir/apache/pid
	ErrorLog $dir/apache/errors
	Mutex pthread
	Listen $1
	User nobody
	Group nogroup
	StartServers 1
	ThreadsPerChild 64
	MaxRequestWorkers 128
	KeepAlive On
	MaxKeepAliveRequests 0
	KeepAliveTimeout 30
	DocumentRoot $dir/www
	DavLockDB $dir/apache/locks
	<Location /put/>
	    Dav On
	</Location>
	<Location /echo>
	    SetHandler reflector
	</Location>
	<Location /text>
	    SetOutputFilter DEFLATE
	</Location>
	END
    } >"$dir/apache.conf"
    exec apache2 -X -f "$dir/apache.conf"
}

start_apache()
{
    start_on_free_port server answers_with_the_token run_apache 127.0.0.1:PORT
}

# start_http_proxy OPTION...: before the server, with a log.
start_http_proxy()
{
    mode=http
    start_proxy --backend "${address[server]}" --access-log "$dir/access" "$@"
    url=http://${address[proxy]}
}

# ---- what lbproxy has written down ----

log_has()
{
    [ "$(wc -l <"$dir/access")" -ge "$1" ]
}

# log_agrees FILE: status and bytes of each answer, a line each, as the clients got them: so has the log, and each
# outcome is ok.
log_agrees()
{
    await 10 "a line for each of $(wc -l <"$1") requests" log_has "$(wc -l <"$1")"
    expect "outcomes but ok" "$(awk '$12 != "ok"' "$dir/access")" ""
    expect "answers in the log" "$(awk '{ print $5, $6 }' "$dir/access" | sort | uniq -c)" "$(sort "$1" | uniq -c)"
}

ends_quietly()
{
    expect_quiet
    expect "clients that got no link" "$(figure clients unserved)" 0
    end_proxy
}

# ---- curl ----

told='%{http_code} %{size_download}\n'

# ask OUT OPTION... URL: what comes goes to $dir/got/OUT, status and bytes to $dir/answers.
ask()
{
    local out=$1
    shift
    curl -sS --max-time 30 -w "$told" -o "$dir/got/$out" "$@" >>"$dir/answers" 2>"$dir/curl.err" ||
        fail "curl $*: exit status $?: $(cat "$dir/curl.err")"
}

# is_same FILE OUT: what came is what the server has.
is_same()
{
    cmp "$dir/www/$1" "$dir/got/$2" || fail "$2 is not $1"
}

last_status()
{
    tail -n 1 "$dir/answers" | cut -d' ' -f1
}

curl_gets()
{
    local name connects
    for name in small text large; do
        ask $name "$url/$name"
        is_same $name $name
        ask "$name.old" --http1.0 "$url/$name"
        is_same $name $name.old
    done
    ask none "$url/none"
    expect "the status of what is not there" "$(last_status)" 404
    ask 'many_#1' "$url/small?[1-100]" -w "$told%{stderr}%{num_connects}\n"
    connects=$(awk '{ sum += $1 } END { print sum }' "$dir/curl.err")
    expect "connections for a hundred requests" "$connects" 1
    for name in "$dir"/got/many_*; do
        cmp "$dir/www/small" "$name" || fail "$name is not small"
    done
}

curl_heads()
{
    ask head -I "$url/large"
    grep -qi '^content-length: 10000000' "$dir/got/head" || fail "HEAD: $(cat "$dir/got/head")"
    ask after -I "$url/small" --next -sS -w "$told" -o "$dir/got/after" "$url/small"
    is_same small after
}

# curl_posts WHAT: what comes back is what was sent (echo), or its size.
curl_posts()
{
    ask posted --data-binary "@$dir/www/large" -H 'Expect:' "$url/echo"
    if [ "$1" = echo ]; then
        is_same large posted
    else
        expect "bytes that came" "$(cat "$dir/got/posted")" 10000000
    fi
    ask posted.chunked -X POST -T - "$url/echo" <"$dir/www/large"
    [ "$1" != echo ] || is_same large posted.chunked
}

curl_puts()
{
    ask put -v -T "$dir/www/large" -H 'Expect: 100-continue' "$url/put/one"
    grep -q '^< HTTP/1.1 100' "$dir/curl.err" || fail "curl was not told to continue"
    ask one "$url/put/one"
    is_same large one
    ask put.chunked -T - "$url/put/two" <"$dir/www/text"
    ask two "$url/put/two"
    is_same text two
}

curl_asks_for_ranges()
{
    ask part -r 5000-9999 "$url/large"
    expect "the status of a part" "$(last_status)" 206
    cmp <(tail -c +5001 "$dir/www/large" | head -c 5000) "$dir/got/part" || fail "another part than was asked for"
}

# curl_asks_whether_modified FIELD HEADER: with what the answer's field says, in that header of the next request.
curl_asks_whether_modified()
{
    local value
    ask head -I "$url/large"
    value=$(sed -n "s/^$1: \(.*\)\r$/\1/Ip" "$dir/got/head")
    [ -n "$value" ] || fail "no $1"
    ask unmodified -H "$2: $value" "$url/large"
    expect "the status of what was not modified" "$(last_status)" 304
    [ ! -s "$dir/got/unmodified" ] || fail "a body with a 304"
}

curl_asks_for_compressed()
{
    ask text.gz -H 'Accept-Encoding: gzip' "$url/text"
    gzip -dc "$dir/got/text.gz" | cmp - "$dir/www/text" || fail "text.gz is not text"
    ask compressed --compressed "$url/text"
    is_same text compressed
}

curl_is_done()
{
    log_agrees "$dir/answers"
    ends_quietly
    echo "note: $(wc -l <"$dir/answers") requests"
}

http_curl_before_nginx()
{
    make_files
    start_full_nginx
    start_http_proxy
    curl_gets
    curl_heads
    curl_posts size
    curl_puts
    curl_asks_for_ranges
    curl_asks_whether_modified etag If-None-Match
    curl_asks_for_compressed
    curl_is_done
}

http_curl_before_node()
{
    make_files
    start_node
    start_http_proxy
    curl_gets
    curl_heads
    curl_posts echo
    curl_puts
    curl_asks_for_ranges
    curl_asks_whether_modified etag If-None-Match
    curl_asks_for_compressed
    curl_is_done
}

http_curl_before_apache()
{
    make_files
    start_apache
    start_http_proxy
    curl_gets
    curl_heads
    curl_posts echo
    curl_puts
    curl_asks_for_ranges
    curl_asks_whether_modified etag If-None-Match
    curl_asks_for_compressed
    curl_is_done
}

http_curl_before_python()
{
    make_files
    start_python
    start_http_proxy
    curl_gets
    curl_heads
    curl_posts echo
    curl_puts
    curl_asks_whether_modified last-modified If-Modified-Since
    curl_is_done
}

# HTTP/1.0: each answer ends its link, and not its client's connection.
http_curl_before_plain_python()
{
    make_files
    start_plain_python
    start_http_proxy
    curl_gets
    curl_heads
    curl_asks_whether_modified last-modified If-Modified-Since
    curl_is_done
}
