# limits.sh - what is bounded: descriptors, clients, links; and how threads share.
# shellcheck shell=bash disable=SC2034,SC2154
limits=(out_of_descriptors_it_waits_idly_and_recovers those_inside_get_a_free_descriptor_before_those_at_the_door no_more_clients_at_once_than_allowed
    no_more_links_at_once_than_allowed threads_share_the_port_and_the_bounds)

# Processor time of the proxy so far, in hundredths of a second.
ticks()
{
    awk '{ print $14 + $15 }' "/proc/${pid[proxy]}/stat"
}

# limit_with_room_for N: the limit of descriptors under which the proxy can open N more.
limit_with_room_for()
{
    local limit=0 free=0
    while [ $free -lt "$1" ]; do
        [ -e "/proc/${pid[proxy]}/fd/$limit" ] || free=$((free + 1))
        limit=$((limit + 1))
    done
    echo $limit
}

# With room for six descriptors three clients are served, a link each; further ones wait in the kernel's line.
out_of_descriptors_it_waits_idly_and_recovers()
{
    local n before
    start_redis
    start_proxy --backend "${address[redis]}" --max-clients 100
    prlimit --pid "${pid[proxy]}" --nofile="$(limit_with_room_for 6)":
    for n in {1..6}; do
        connect "$n" "${address[proxy]}"
        say "$n" PING
        [ "$n" -gt 3 ] || expect "the answer to client $n" "$(hear "$n")" +PONG
    done
    before=$(ticks)
    sleep 1 # not to wait for something, but to measure over
    expect_range "hundredths of a second that lbproxy was busy in one" $(($(ticks) - before)) 0 5
    for n in 4 5 6; do
        hear "$n" 0.01
        expect_range "what read says of client $n: 1 closed, above 128 waiting" $? 129 255
    done
    hang_up 1
    expect "the answer to client 4, in the place of another" "$(hear 4)" +PONG
    prlimit --pid "${pid[proxy]}" --nofile=200:
    for n in 5 6; do
        expect "the answer to client $n, with descriptors again" "$(hear "$n")" +PONG
    done
    for n in 2 3 4 5 6; do
        is_served "$n" || fail "client $n is served no more"
        hang_up "$n"
    done
    expect_quiet
    end_proxy
}

# With room for seven the fourth client is in without a link. What others leave is for its link, not for a fifth client.
those_inside_get_a_free_descriptor_before_those_at_the_door()
{
    local n
    start_redis
    start_proxy --backend "${address[redis]}" --max-clients 100
    prlimit --pid "${pid[proxy]}" --nofile="$(limit_with_room_for 7)":
    for n in {1..6}; do
        connect "$n" "${address[proxy]}"
        say "$n" PING
        [ "$n" -gt 3 ] || expect "the answer to client $n" "$(hear "$n")" +PONG
    done
    for n in {1..3}; do
        hang_up "$n"
        expect "the answer to client $((n + 3)), in the place of another" "$(hear $((n + 3)))" +PONG
    done
    for n in {4..6}; do
        hang_up "$n"
    done
    expect_quiet
    expect "clients that got no link" "$(figure clients unserved)" 0
    end_proxy
}

# two_of_four OPTION...: four clients come to a proxy that serves two of them at once.
two_of_four()
{
    local n
    start_redis
    start_proxy --backend "${address[redis]}" "$@"
    for n in {1..4}; do
        connect "$n" "${address[proxy]}"
        say "$n" PING
    done
    expect "the answer to client 1" "$(hear 1)" +PONG
    expect "the answer to client 2" "$(hear 2)" +PONG
}

others_take_their_places()
{
    local n
    for n in 1 2; do
        hang_up $n
        expect "the answer to client $((n + 2)), in the place of another" "$(hear $((n + 2)))" +PONG
    done
    hang_up 3
    hang_up 4
    expect_quiet
    end_proxy
}

no_more_clients_at_once_than_allowed()
{
    two_of_four --max-clients 2
    expect "clients open" "$(figure clients open)" 2
    expect "clients accepted" "$(figure clients accepted)" 2
    page_has 'listener full' || fail "the page does not say that the listener is full: $(page)"
    others_take_their_places
}

no_more_links_at_once_than_allowed()
{
    two_of_four --max-links 2
    await 5 "the others wait for a link" figure_is links waiting 2
    expect "links open" "$(figure links open)" 2
    others_take_their_places
}

# The kernel chooses the thread: that one of two gets all of forty is a matter of 2^-39.
threads_share_the_port_and_the_bounds()
{
    local n shares
    start_redis
    start_proxy --backend "${address[redis]}" --threads 2 --max-clients 40
    for n in {1..40}; do
        connect "$n" "${address[proxy]}"
        say "$n" PING
    done
    await 5 "a thread is full, or both are" page_has 'listener full'
    shares=$(page | sed -n 's/^thread [01]: clients \([0-9]*\),.*/\1/p' | tr '\n' ' ')
    read -r -a n <<<"$shares"
    expect "threads that tell of their clients" ${#n[@]} 2
    expect_range "clients of the first thread" "${n[0]}" 1 20
    expect_range "clients of the second thread" "${n[1]}" 1 20
    expect "clients open" "$(figure clients open)" $((n[0] + n[1]))
    for n in {1..40}; do
        hang_up "$n"
    done
    await 10 "who waited at a full thread was served and has gone" figure_is clients accepted 40
    expect_quiet
    end_proxy
}
