#!/bin/bash
# preload.sh - lbproxy with a real system call failing under it, by way of a library that is loaded before it.
#
# For each pair of call and errno, and each of the first calls in turn, a proxy serves requests while that call fails:
# no request may be answered but by 200 or by a word of the proxy's own (502, 503, 504), the next ones are served again,
# no descriptor stays behind, and the proxy ends well and has complained of nothing.
#
# Usage: preload.sh DIRECTORY [PATTERN]    where lbproxy, backend and preload.so are; cases to run, as a glob
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=$(readlink -f "${1:?preload.sh: the directory is missing}")
pattern=${2:-*}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/proxy/case.sh
. tests/proxy/case.sh

# call, errno and its name, how many of the first calls are tried, how many fail at a time
pairs=(
    "socket 24 EMFILE 2 1"
    "socket 105 ENOBUFS 2 1"
    "socket 24 EMFILE_for_long 1 6"
    "connect 99 EADDRNOTAVAIL 2 1"
    "connect 111 ECONNREFUSED 2 1"
    "connect 4 EINTR 2 1"
    "getsockopt 105 ENOBUFS 2 1"
    "recvmsg 104 ECONNRESET 6 1"
    "recvmsg 12 ENOMEM 6 1"
    "recvmsg 11 EAGAIN 6 1"
    "recvmsg short short 6 1"
    "sendmsg 32 EPIPE 6 1"
    "sendmsg 105 ENOBUFS 6 1"
    "sendmsg 11 EAGAIN 6 1"
    "sendmsg short short 6 1"
    "close 4 EINTR 2 1"
    "close 5 EIO 2 1"
    "accept4 24 EMFILE 3 1"
    "accept4 103 ECONNABORTED 3 1"
    "epoll_ctl 12 ENOMEM 2 1"
    "epoll_ctl 28 ENOSPC 2 1"
)

ask()
{
    curl -s -o /dev/null -w '%{http_code}' --max-time 8 "http://${address[proxy]}/$1"
}

is_ok()
{
    [ "$(ask last)" = 200 ]
}

# Requests while the call fails, then until all is well again.
ask_on()
{
    local n code codes=
    for n in {1..6}; do
        code=$(ask "$n")
        codes+=" $code"
        case $code in
        200 | 502 | 503 | 504) ;;
        *) fail "request $n got $code, after$codes" ;;
        esac
    done
    await 10 "it serves again, after$codes" is_ok
    for n in {1..4}; do
        expect "the answer to request $n afterwards" "$(ask "$n")" 200
    done
}

descriptors()
{
    local all=("/proc/${pid[proxy]}/fd/"*)
    echo ${#all[@]}
}

# has_only N: N descriptors, and one a link.
has_only()
{
    [ "$(descriptors)" = $(($1 + $(figure links open))) ]
}

# one CALL ERRNO NTH TIMES
one()
{
    local idle
    start_backend one 127.0.0.1:0
    start_backend other 127.0.0.1:0
    start proxy env LD_PRELOAD="$bin/preload.so" FAULT_CALL="$1" FAULT_ERROR="$2" FAULT_NTH="$3" FAULT_TIMES="$4" \
        FAULT_NOTE="$dir/note" "$bin/lbproxy" --listen 127.0.0.1:0 --status 127.0.0.1:0 --answer-timeout 2 \
        --backend "${address[one]}" --backend "${address[other]}"
    await 10 "lbproxy's status page" has_said proxy "status on"
    status_address=$said
    idle=$(descriptors)
    ask_on
    await 10 "$idle descriptors beside those of links; there are $(descriptors)" has_only "$idle"
    end_proxy
    [ -s "$dir/note" ] || fail "the call never failed"
}

failed=0
grep -q __asan_init "$bin/lbproxy" && { echo "preload.sh: not under a sanitizer, which must be loaded first"; exit 0; }
for pair in "${pairs[@]}"; do
    read -r call error name upto times <<<"$pair"
    for ((nth = 1; nth <= upto; nth++)); do
        title=${call}_${nth}_fails_with_$name
        # shellcheck disable=SC2254
        case $title in $pattern) ;; *) continue ;; esac
        eval "$title() { one $call $error $nth $times; }"
        run_case "$title"
        [ -e "$work/$title.passed" ] || failed=$((failed + 1))
    done
done
[ $failed -eq 0 ]
