#!/bin/bash
# planted.sh - faults planted in a copy of what the fuzz targets try: each must be found within a minute. The exit status
# is 0 when all were.
#
# Usage: planted.sh BUILD [NAME]    all of them, or one
set -u
[ $# -ge 1 ] || { sed -n 's/^# Usage: //p' "$0" >&2; exit 2; }
mkdir -p "$1"
build=$(cd "$1" && pwd)
only=${2:-}
cd "$(dirname "$0")/../.." || exit 1
missed=0

# same TARGET TREE ROOM: whether nothing of it was changed
same()
{
    if [ "$1" = calls ]; then
        diff -rq link "$2/link" && diff -rq pool "$2/pool"
    else
        diff -rq "$3" "$2/$3"
    fi
}

# plant NAME TARGET FILE SED: the change must change something. FILE may be a pattern.
plant()
{
    local tree=$build/$1 begin=$SECONDS room=examples/lbproxy/message
    case $2 in
        frame) room="link" ;;
        calls) room="." ;; # FILE is within the tree
    esac
    [ -z "$only" ] || [ "$only" = "$1" ] || return 0
    rm -rf "$tree"
    mkdir -p "$tree/examples/lbproxy" "$tree/tests"
    cp -r examples/lbproxy/message "$tree/examples/lbproxy/"
    cp -r include backoff link pool "$tree/"
    cp -r tests/message tests/fuzz tests/fakes "$tree/tests/"
    # shellcheck disable=SC2086
    sed -i "$4" "$tree/$room/"$3
    if same "$2" "$tree" "$room" >"$tree/changed"; then
        echo "$1: the fault is not planted"
        missed=1
        return
    fi
    if "$tree/tests/fuzz/run.sh" 60 "$tree/build" "$2" >"$tree/log" 2>&1; then
        echo "$1: not found in $((SECONDS - begin)) s"
        missed=1
    elif grep -q 'a fault; see' "$tree/log"; then
        echo "$1: found in $((SECONDS - begin)) s, building included"
        grep -m 1 -E 'does not hold|SUMMARY|runtime error' "$tree/log" | sed 's|^.*/||; s/^/    /'
    else
        echo "$1: does not build; see $tree/log"
        missed=1
    fi
}

plant two-hosts request rules.c 's/found->hosts > 1/false/'
plant length-and-encoding request '*.c' 's/found->lengths > 0 && found->encodings > 0/false/
    s/\(llhttp_init(&message->parser.*\);$/\1;\n    llhttp_set_lenient_chunked_length(\&message->parser, 1);/'
plant hop-fields answer compose.c 's/!field->hop && //'
plant skip-one-more request parts.c 's/iov_base + n, iov/iov_base + n + 1, iov/'
plant chunk-end answer guard.c "s/if (byte != (unsigned char)wanted)/if (wanted == '\\\\n' \&\& byte != '\\\\n')/"
plant scan-past request scan.c 's/lf != NULL ? end : n;/lf != NULL ? end : n + 1;/'
plant trailer-parts request trailer.c 's/trailer_name_n += n/trailer_name_n = n/'
plant connection-options answer rules.c 's/mark_hop(head, option);/if (found->options < 2) &/'
plant frame-memory frame framed_reader.c 's/if (size < needed)/if (false)/; 1i #include <stdbool.h>'
plant frame-text-too-long frame framed_wire.c 's/"ERROR",     4, 4 + FRAMED_MAX_TEXT/"ERROR",     4, 5 + FRAMED_MAX_TEXT/'
plant frame-flags frame framed_wire.h 's/head->flags | head->reserved/head->reserved/'
plant frame-renumbered frame framed_writer.c 's/FRAMED_REQUEST \&\& !out->begun)$/FRAMED_REQUEST)/'
plant frame-waiting frame framed_writer.c 's/writer->waiting -= taken;//'
plant frame-kept frame framed_input.c 's/framed__frame_done(env, &frame);/(void)env;/'
plant frame-refused-and-gone frame framed.c 's/^    framed__stop_waiting(.*//'
plant frame-left-behind frame framed.c 's/^    framed__writer_free(.*//'
plant calls-told-twice calls pool/call.c 's/^    close_call(call, status);$/    if (status != LINKPOOL_ETIMEDOUT)\n        close_call(call, status);/'
plant calls-another-answer calls link/framed_ids.c 's/if ((\*at)->id == id)/if (((*at)->id ^ id) % 8 == 0)/'
plant calls-late calls pool/call_clock.c 's/due >= pool->clocked->clock_prev->timer.due/true/'
plant calls-queue-left calls pool/call_link.c 's/^    freed = leave_queue(call);/    freed = NULL;/'
plant calls-bytes-kept calls pool/call.c 's/^        pool->call_bytes -= call->request_size;/        (void)pool;/'
plant calls-pack-left calls link/framed_writer.c 's/else if (!--pack->n_left)/else if (!--pack->n_left \&\& !out->begun)/'
plant calls-not-gathered calls link/framed_send.c 's/ 0 : protocol_later(pl);/ 0 : 0;/'
plant calls-dialled-on calls pool/pool.c 's/ \&\& !pool__oldest_taker(host)) {/) {/'
exit "$missed"
