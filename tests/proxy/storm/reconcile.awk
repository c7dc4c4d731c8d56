# reconcile.awk - holds the storm's logs against each other: what each client got, what each backend saw, what lbproxy
# wrote down. Prints what became of the requests and each fault; exit status 1 where there is one.
#
# Usage: awk -f reconcile.awk -v requests=N -v addresses="A B C" EVENTS a.log b.log c.log ACCESS CLIENT
#
# EVENTS has a line each time a backend was killed, was found dead, was stopped and went on: TIME NAME PROCESS
# killed|down|stopped|continued. The backends' and the client's logs are told in backend.c and client.c.

BEGIN {
    split(addresses, address_of, " ")
    for (i = 1; i <= 3; i++)
        name_at[address_of[i]] = substr("abc", i, 1)
    # Which failures a backend's behaviour explains. A second answer does where no body comes: see below.
    explains["stall"] = explains["late"] = explains["stall_inside"] = "answer_timeout"
    explains["close"] = "backend_closed"
    explains["reset"] = explains["reset_early"] = "backend_reset"
    explains["cut"] = "cut backend_closed"
    explains["reset_inside"] = "cut backend_reset"
    explains["exit"] = explains["exit_inside"] = explains["early_close"] = inside = "cut backend_closed backend_reset"
    explains["broken"] = explains["head_body"] = "backend_broken cut"
    explains["twice"] = explains["twice_across"] = explains["twice_behind"] = explains["twice_idle"] = "backend_broken"
    status_of["answer_timeout"] = status_of["wait_timeout"] = 504
    status_of["unavailable"] = status_of["full"] = 503
    status_of["backend_closed"] = status_of["backend_reset"] = status_of["backend_broken"] = 502
    # What a pool takes for a backend's failure, as it does its death.
    split("close reset reset_early reset_inside cut exit exit_inside early_close", words, " ")
    for (i in words)
        fails[words[i]] = 1
    near = 0.5 # seconds between a backend's death and what it explains
}

function fault(kind, id, why)
{
    if (++faults[kind] <= 5)
        print "FAULT " kind ": request " id ": " why
    n_faults++
}

# ---- events ----

FILENAME ~ /events\.log$/ {
    if ($4 == "down" || $4 == "stopped")
        bad_time[$2, ++bad_times[$2]] = $1
    if ($4 == "killed" || $4 == "down" && !($3 in death))
        death[$3] = $1
    if ($4 == "stopped")
        frozen[$3, ++freezes[$3]] = $1
    if ($4 == "continued")
        thawed[$3, freezes[$3]] = $1
    next
}

# ---- backends ----

FILENAME ~ /[abc]\.log$/ {
    name = substr(FILENAME, length(FILENAME) - 4, 1)
    name_of[$2] = name
    link = name " " $2 " " $3
    id = $5
    if ($4 == "head") {
        if (link in poison)
            fault("a request on a link that had to be closed", id, "after " poison[link] " on " link)
        if ($7 == "broken" || $7 == "head_body")
            poison[link] = $7 " to " id
        arrivals[id] = arrivals[id] name " " $2 " " $3 " " $1 " " $6 " " $7 " " $8 " " $9 ";"
        n_arrivals[id]++
        behaved[$7]++
        if ($7 in fails)
            bad_time[name, ++bad_times[name]] = $1
    } else if ($4 == "part") {
        n_arrivals[id]++
        arrivals[id] = arrivals[id] name " " $2 " " $3 " " $1 " ? part - 0;"
    } else if ($4 == "clear") {
        poison[link] = "a second answer behind that to " id
        strays++
    } else if ($4 == "crossed") {
        exempt[$6] = 1
        n_arrivals[$6]++
        arrivals[$6] = arrivals[$6] name " " $2 " " $3 " " $1 " ? crossed - 0;"
        crossings++
    } else if ($4 == "exit")
        death[$2] = $1
    else if ($4 == "idle")
        closed_idle[name, int($1 * 100)] = 1 # within that hundredth of a second
    else if ($4 == "WRONG")
        fault("a backend got what no client has sent", id, substr($0, index($0, $6)))
    next
}

# ---- lbproxy ----

FILENAME ~ /access\.log$/ {
    if (NF != 12 || !match($4, /^\/s\?id=[0-9]+$/))
        fault("a line in the access log that cannot be read", "-", $0)
    else {
        id = substr($4, 7)
        lines[id]++
        line[id] = $0
    }
    next
}

# ---- clients ----

{
    told[$3]++
    client[$3] = $0
    if (told[$3] > 1 || $3 < 1 || $3 > requests)
        fault("a client's second line for a request", $3, $0)
}

# ---- what explains a failure ----

# Whether the process died, or was stopped, about then.
function died(process, from, to)
{
    return process in death && death[process] > from - near && death[process] < to + near
}

function was_frozen(process, from, to,    i)
{
    for (i = 1; i <= freezes[process]; i++)
        if (frozen[process, i] < to + near && (!((process, i) in thawed) || thawed[process, i] > from - near))
            return 1
    return 0
}

function in_trouble(name, from, to,    i)
{
    for (i = 1; i <= bad_times[name]; i++)
        if (bad_time[name, i] > from && bad_time[name, i] < to)
            return 1
    return 0
}

# Which of the arrivals was the last: they come by backend.
function latest(all, n,    i, parts, best, time)
{
    for (i = 1; i <= n; i++) {
        split(all[i], parts, " ")
        if (best == 0 || parts[4] > time) {
            best = i
            time = parts[4]
        }
    }
    return best
}

function is_among(word, words)
{
    return index(" " words " ", " " word " ") > 0
}

# What the last backend that got it did, if that explains the outcome.
function explained_by_arrival(id, outcome, begun, ended, n,    all, last)
{
    split(arrivals[id], all, ";")
    split(all[latest(all, n)], last, " ") # name process connection time method behaviour framing status
    if (is_among(outcome, explains[last[6]]) && (last[6] !~ /^twice/ || last[5] == "HEAD" || last[8] == 204))
        return last[6]
    if (is_among(outcome, inside) && died(last[2], begun, ended))
        return "died"
    if (is_among(outcome, "answer_timeout cut") && was_frozen(last[2], begun, ended))
        return "frozen"
    return ""
}

# It reached nobody, the last time: then its link had been closed, or its backend had died, or was frozen.
function explained_by_none(outcome, begun, ended,    process, at)
{
    for (process in name_of)
        if (name_of[process] == name_at[A_backend]) {
            if (is_among(outcome, inside) && died(process, begun, ended))
                return "unseen,_died"
            if (was_frozen(process, begun, ended))
                return "unseen,_frozen"
        }
    if (is_among(outcome, "backend_closed backend_reset"))
        for (at = int(begun * 100); at <= int(ended * 100) + 1; at++)
            if ((name_at[A_backend], at) in closed_idle)
                return "unseen,_idle_link"
    return ""
}

# What of the backends' doings explains the line's outcome; "" nothing.
function explanation(id, outcome, begun, ended,    n, why, i)
{
    n = n_arrivals[id] + 0
    if (outcome == "unavailable" || outcome == "wait_timeout") {
        for (i = 1; i <= 3; i++)
            if (!in_trouble(substr("abc", i, 1), begun - 3, ended + near))
                return ""
        return n < A_tries ? "all_down" : ""
    }
    why = n > 0 ? explained_by_arrival(id, outcome, begun, ended, n) : ""
    return why == "" && n < A_tries ? explained_by_none(outcome, begun, ended) : why
}

function count(result, outcome, why)
{
    became[result " " outcome " " why]++
}

function has_close_framing(id)
{
    return arrivals[id] ~ / close [0-9]+;$/
}

# ---- each request ----

function check_sent(id, method,    n)
{
    n = n_arrivals[id] + 0
    if ((method == "POST" || method == "PUT") && n > 1)
        fault("sent twice", id, method ": " arrivals[id])
    if (n > 2)
        fault("sent more than twice", id, method ": " arrivals[id])
    if (n > A_tries)
        fault("more arrivals than tries", id, n " > " A_tries ": " arrivals[id])
    if (n == 2)
        again++
}

function check_ok(id, outcome, status, bytes)
{
    count("ok", outcome, "-")
    if (outcome != "ok")
        fault("a good answer with another outcome", id, outcome ": " line[id])
    if (status != A_status)
        fault("another status in the log", id, status ", not " A_status)
    if (bytes != A_bytes)
        fault("other bytes in the log", id, bytes ", not " A_bytes)
    if (n_arrivals[id] + 0 == 0)
        fault("an answer to what has not arrived", id, line[id])
}

function check_failed(id, result, how, status, outcome, begun, ended,    why)
{
    why = id in exempt ? "crossed" : explanation(id, outcome, begun, ended)
    failed++
    count(result, outcome, why)
    if (why == "")
        fault("not explained by the backends", id, result " " how " " line[id] " / " arrivals[id])
    if (result == "gone")
        fault("closed without an answer", id, how " " line[id] " / " arrivals[id])
    if (result == "own" && (status != status_of[outcome] || status != A_status))
        fault("own answer and outcome disagree", id, status " " line[id])
    if (result == "cut" && how != "reset")
        fault("cut, and not by a reset", id, line[id])
    if (result == "cut" && status != A_status)
        fault("another status in the log", id, status ", not " A_status)
}

# A client that has left is gone, or it left when all was over already.
function check_left(id, how, status, outcome, begun, ended,    n, all, last)
{
    left++
    count("left_" how, outcome, "-")
    if (outcome != "client_gone" && outcome != "ok" && explanation(id, outcome, begun, ended + 2) == "")
        fault("left, and not explained", id, line[id] " / " arrivals[id])
    if (outcome == "client_gone" && status == 0 && A_status != 499 && A_status < 200)
        fault("left, and another status in the log", id, line[id])
    n = split(arrivals[id], all, ";") - 1
    split(all[n < 1 ? 1 : latest(all, n)], last, " ")
    if (n > 0 && last[4] > ended + near && !was_frozen(last[2], ended, last[4]))
        fault("asked for a client that had left", id, line[id] " / " arrivals[id] " left at " ended)
}

function check(id,    c, a)
{
    split(client[id], c, " ")
    if (lines[id] + 0 != 1) {
        fault("not one line in the access log", id, lines[id] + 0 " lines; " client[id] " / " arrivals[id])
        return
    }
    split(line[id], a, " ")
    A_status = a[5]; A_bytes = a[6]; A_backend = a[9]; A_tries = a[11]
    if (a[3] != c[4])
        fault("another method in the log", id, a[3] ", not " c[4])
    check_sent(id, c[4])
    if (c[7] == "ok")
        check_ok(id, a[12], c[9], c[12])
    else if (c[7] == "short" && has_close_framing(id)) {
        count("short", a[12], "until_close")
        failed++
    } else if (c[7] == "own" || c[7] == "cut" || c[7] == "gone")
        check_failed(id, c[7], c[8], c[9], a[12], c[1], c[2])
    else if (c[7] == "left") {
        check_left(id, c[8], c[9], a[12], c[1], c[2])
    } else if (c[7] == "wrong" && id in exempt) {
        count("wrong_but_crossed", a[12], "-")
        excused++
    } else
        fault(c[7], id, client[id] " / " line[id] " / " arrivals[id])
}

END {
    for (id = 1; id <= requests; id++)
        if (told[id] + 0 == 0)
            fault("not told by the client", id, "")
        else
            check(id)
    for (id in lines)
        if (id + 0 < 1 || id + 0 > requests)
            fault("a line for no request", id, line[id])
    for (what in became)
        print became[what], what | "sort -rn | awk '{ printf \"%8d  %-14s %-16s %s\\n\", $1, $2, $3, $4 }'"
    close("sort -rn | awk '{ printf \"%8d  %-14s %-16s %s\\n\", $1, $2, $3, $4 }'")
    for (what in behaved)
        doings = doings " " what " " behaved[what]
    print "backends did:" doings
    print requests " requests: " failed + 0 " failed, " left + 0 " left by their clients, " again + 0 " sent again, " \
        strays + 0 " second answers, " crossings + 0 " of them crossed a request (" excused + 0 " wrong by that)"
    for (what in faults)
        print "FAULT " what ": " faults[what]
    exit n_faults > 0
}
