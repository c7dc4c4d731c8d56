# streams.sh - what goes through: every byte, in order, each end passed on, at the pace of the slower side.
# shellcheck shell=bash disable=SC2034,SC2154
streams=(a_half_close_is_passed_on an_empty_stream_ends_both_ways)

# stream_through OFFERS TAKES BYTES TAKE...: OFFERS and TAKES are client and backend, or the other way round.
stream_through()
{
    local -A end=([$1]="offer $3" [$2]="take ${*:4}")
    # shellcheck disable=SC2086
    start backend "$bin/stream" listen 127.0.0.1:0 ${end[backend]}
    start_proxy --backend "${address[backend]}"
    echo 5 >"/proc/${pid[proxy]}/clear_refs" # the peak of its memory is from now on
    before=$(peak_memory)
    # shellcheck disable=SC2086
    launch client "$bin/stream" connect "${address[proxy]}" ${end[client]}
}

peak_memory()
{
    awk '$1 == "VmHWM:" { print $2 }' "/proc/${pid[proxy]}/status"
}

# streams_end SECONDS: both ends are content, and so is the proxy with what passed through it: streams_end 10 to BYTES
streams_end()
{
    local end
    for end in client backend; do
        status_of $end "$1"
        expect "the $end's end of the stream: $(cat "$dir/$end.err")" "$status" 0
    done
    expect_quiet
    expect "clients served" "$(figure clients served)" 1
}

# What a way carries: the stream one way, and how long it was the other.
expect_bytes()
{
    expect "bytes passed on, bytes_$1" "$(sum_of "bytes_$1")" "$3"
    expect "bytes passed on, bytes_$2" "$(sum_of "bytes_$2")" $((${#3} + 1))
}

a_half_close_is_passed_on()
{
    stream_through client backend 100000 0 0
    streams_end 10
    expect_bytes to from 100000
    end_proxy
    stream_through backend client 100000 0 0
    streams_end 10
    expect_bytes from to 100000
    end_proxy
}

an_empty_stream_ends_both_ways()
{
    stream_through client backend 0 0 0
    streams_end 10
    expect_bytes to from 0
    end_proxy
}

# Offers 1 GiB to whom takes 1 MB/s for 20 seconds, then all.
slowly()
{
    stream_through "$1" "$2" 1073741824 1000000 20
    streams_end 60
    after=$(peak_memory)
    if is_sanitized; then
        echo "note: memory is not measured in a sanitized build"
    else
        echo "note: memory $before KiB before, $after KiB at most"
        expect_range "KiB that lbproxy's memory has grown at most" $((after - before)) 0 1023
    fi
}

a_slow_backend_makes_the_client_wait_and_takes_no_memory()
{
    slowly client backend
    expect_bytes to from 1073741824
    end_proxy
}

a_slow_client_makes_the_backend_wait_and_takes_no_memory()
{
    slowly backend client
    expect_bytes from to 1073741824
    end_proxy
}
