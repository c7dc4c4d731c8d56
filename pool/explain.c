/* explain.c - why a lease or a call waits or failed, in words and in the members of the lease. Tags are never shown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "pool/call.h"
#include "pool/internal.h"

/* ---- the cause ---- */

static const struct pool_host *latest_failed(const struct pool_line *line)
{
    const struct pool_host *latest = line->host;

    for (size_t i = 0; line->target && i < line->target->pick.n; i++) {
        const struct pool_host *host = line->target->hosts[i];
        if (host->owner.last_reason && (!latest || host->failed_at > latest->failed_at))
            latest = host;
    }
    return latest;
}

void pool__explain_failure(struct pool_lease *lease, const struct pool_line *line)
{
    const struct pool_host *host = latest_failed(line);

    if (!host || !(pool__is_down(host) || host->failed_at >= pool__claim(lease)->asked))
        return; /* what failed before it asked, and is up again, is not why */
    lease->reason = (enum link_reason)host->owner.last_reason;
    lease->system_errno = host->owner.last_errno;
}

static void count_stages(
    const struct pool_host *host, unsigned *ready, unsigned *handshaking, unsigned *connecting, unsigned *backing_off)
{
    *ready += host->n[LINK_READY] + host->n[LINK_RESETTING];
    *handshaking += host->n[LINK_HANDSHAKING];
    *connecting += host->n[LINK_CONNECTING];
    *backing_off += host->n[LINK_BACKOFF] + host->n[LINK_OFFLINE];
}

enum pool_stage pool__stage(const struct pool_line *line)
{
    unsigned ready = 0, handshaking = 0, connecting = 0, backing_off = 0;

    if (line->host)
        count_stages(line->host, &ready, &handshaking, &connecting, &backing_off);
    for (size_t i = 0; line->target && i < line->target->pick.n; i++)
        count_stages(line->target->hosts[i], &ready, &handshaking, &connecting, &backing_off);
    if (ready)
        return POOL_STAGE_LINE;
    if (handshaking)
        return POOL_STAGE_HANDSHAKE;
    if (connecting)
        return POOL_STAGE_CONNECT;
    return backing_off ? POOL_STAGE_BACKOFF : POOL_STAGE_LINE;
}

/* ---- words ---- */

struct words {
    char *text;
    size_t n, length;
};

static void __attribute__((format(printf, 2, 3))) say(struct words *to, const char *format, ...)
{
    va_list args;
    size_t left = to->length < to->n ? to->n - to->length : 0;
    int more;

    va_start(args, format);
    more = vsnprintf(left ? to->text + to->length : NULL, left, format, args);
    va_end(args);
    to->length += more > 0 ? (size_t)more : 0;
}

/* Nobody holds them, and nobody is lent them: why. */
static void say_reserve(struct words *to, const struct pool_host *host)
{
    unsigned asked = 0, without_room = 0;
    const struct link *link;

    DL_FOREACH (host->lists[PLACE_RESERVE], link) {
        if (link__is_doubted(link))
            asked++;
        else if (link__is_shared(link) && link__is_full(link))
            without_room++;
    }
    if (asked)
        say(to, ", %u being asked whether it is alive", asked);
    if (without_room)
        say(to, ", %u whose peer takes nobody just now (room 0)", without_room);
}

static void say_host(struct words *to, const struct pool_host *host)
{
    const struct pool_host_options *options = pool__options(host);
    const struct link *resting = host->lists[PLACE_RESTING];
    double retry = resting ? link_retry_in(resting) : 0;

    say(to, "%s is %s", host->owner.address_text, link_state_name(pool_host_state(host)));
    say(to, " (%u of %u links, %u leased, %u opening", pool__sockets(host), options->max_links, host->n_leased,
        pool__opening(host));
    if (host->line.n)
        say(to, ", %u waiting", host->line.n);
    say_reserve(to, host);
    say(to, ")");
    if (host->owner.last_reason)
        say(to, ", last: %s", link_reason_text((enum link_reason)host->owner.last_reason));
    if (host->owner.last_errno)
        say(to, " (errno %d)", host->owner.last_errno);
    if (host->owner.text)
        say(to, ": %s", host->owner.text);
    if (retry > 0)
        say(to, ", next try in %.3g s", retry);
}

enum {
    MOST_HOSTS = 16 /* of a target that are told of: it may have thousands */
};

static void say_target(struct words *to, const struct pool_target *target)
{
    say(to, "%s is %s", target->name, link_state_name(pool_target_state(target)));
    if (!target->known)
        say(to, ", its endpoints are not known yet");
    else if (!target->pick.n)
        say(to, ", it has no endpoints");
    if (target->line.n)
        say(to, ", %u waiting", target->line.n);
    for (size_t i = 0; i < target->pick.n && i < MOST_HOSTS; i++) {
        say(to, "; ");
        say_host(to, target->hosts[i]);
    }
    if (target->pick.n > MOST_HOSTS)
        say(to, "; and %zu more", target->pick.n - MOST_HOSTS);
}

static void say_line(struct words *to, const struct pool_line *line)
{
    const struct pool *pool = line->host ? pool__of(line->host) : line->target->pool;

    if (line->host)
        say_host(to, line->host);
    else
        say_target(to, line->target);
    if (line->is_starving && pool->n_links >= pool->options.max_links)
        say(to, "; the pool is full: %u of %u links", pool->n_links, pool->options.max_links);
}

static int finish(const struct words *to)
{
    if (to->n && !to->length)
        *to->text = '\0';
    return (int)to->length;
}

static const char *stage_text(enum pool_stage stage)
{
    static const char *const texts[] = {"", "in line", "waiting for the next try", "connecting", "in the handshake"};

    return texts[stage];
}

static const char *bound_text(enum pool_bound bound)
{
    static const char *const texts[] = {"", "max_line", "max_waiting", "max_hosts", "max_call_bytes"};

    return texts[bound];
}

static void say_failure(struct words *to, const struct pool_lease *lease)
{
    say(to, "%s", linkpool_strerror(lease->status));
    if (lease->bound)
        say(to, ": %s", bound_text(lease->bound));
    if (lease->stage)
        say(to, " %s", stage_text(lease->stage));
    if (lease->reason)
        say(to, ", last: %s", link_reason_text(lease->reason));
    if (lease->system_errno)
        say(to, " (errno %d)", lease->system_errno);
}

static void say_left(struct words *to, const struct pool *pool, double deadline)
{
    if (deadline == INFINITY)
        say(to, ", no deadline");
    else
        say(to, ", %.3g s left", deadline - pool__now(pool));
}

int pool_explain(const struct pool_lease *lease, char *text, size_t n)
{
    const struct pool_claim *claim = pool__claim(lease);
    struct words to = {text, n, 0};

    switch (claim->state) {
    case CLAIM_WAITING:
        say(&to, "waiting, %s", stage_text(pool__stage(claim->line)));
        say_left(&to, claim->pool, claim->deadline);
        say(&to, ": ");
        say_line(&to, claim->line);
        break;
    case CLAIM_WON:
        say(&to, "a channel is there, and will be told of in this turn");
        break;
    case CLAIM_HELD:
        say(&to, "holds a channel to %s", lease->host->owner.address_text);
        break;
    default:
        if (lease->status < 0)
            say_failure(&to, lease);
        else
            say(&to, "not in use");
        break;
    }
    return finish(&to);
}

int pool_host_explain(const struct pool_host *host, char *text, size_t n)
{
    struct words to = {text, n, 0};

    say_host(&to, host);
    return finish(&to);
}

int pool_target_explain(const struct pool_target *target, char *text, size_t n)
{
    struct words to = {text, n, 0};

    say_target(&to, target);
    return finish(&to);
}

/* ---- calls ---- */

static void say_attempts(struct words *to, const struct pool_call *call)
{
    if (call->attempts)
        say(to, ", %u attempt%s", call->attempts, call->attempts == 1 ? "" : "s");
}

static void say_fate(struct words *to, const struct pool_call *call)
{
    static const char *const texts[] = {"not sent", "sent and not answered", "answered in part", "perhaps sent"};

    say(to, ", %s", texts[call->fate]);
    if (call->answer_size)
        say(to, " (%zu bytes)", call->answer_size);
}

static void say_sent(struct words *to, const struct pool_call *call)
{
    const char *address = call->lease.host->owner.address_text;
    double ago = pool__now(call__state(call)->pool) - call__state(call)->sent_at;
    enum pool_fate fate = link__fate(call->lease.channel, false);

    if (call__state(call)->stage == CALL_SENDING)
        say(to, "waiting for a link to %s to take it", address);
    else if (fate == POOL_NOT_SENT)
        say(to, "accepted for %s %.3g s ago, nothing of it has gone", address, ago);
    else if (fate == POOL_SENT_NO_ANSWER)
        say(to, "sent to %s %.3g s ago", address, ago);
    else
        say(to, "sent to %s %.3g s ago, answered in part", address, ago);
    if (call->answer_size)
        say(to, " (%zu bytes)", call->answer_size);
}

static void say_under_way(struct words *to, const struct pool_call *call)
{
    const struct pool_claim *claim = pool__claim(&call->lease);
    const struct call_state *state = call__state(call);

    switch (claim->state) {
    case CLAIM_WAITING:
        say(to, "waiting, %s", stage_text(pool__stage(claim->line)));
        break;
    case CLAIM_WON:
        say(to, "a channel is there, and will be told of in this turn");
        break;
    case CLAIM_HELD:
        say_sent(to, call);
        break;
    default: /* told of it in this turn, or tried again */
        say_failure(to, &call->lease);
        break;
    }
    say_left(to, state->pool, call__deadline(state));
    say_attempts(to, call);
    if (claim->state != CLAIM_WAITING)
        return;
    say(to, ": ");
    say_line(to, claim->line);
}

static void say_over(struct words *to, const struct pool_call *call)
{
    struct pool_lease as = {.status = call->status,
        .bound = call->bound,
        .stage = call->stage,
        .reason = call->reason,
        .system_errno = call->system_errno};

    if (call->status == 0) {
        if (call->attempts)
            say(to, "answered, %zu bytes", call->answer_size);
        else
            say(to, "not in use");
    } else {
        say_failure(to, &as);
        if (call->status == LINKPOOL_EINVAL && call->attempts)
            say(to, ": its protocol does not take these %zu bytes", call->request_size);
        if (call->code)
            say(to, " %u", call->code);
        if (*call->words)
            say(to, ": %s", call->words);
        if (call->status != LINKPOOL_EPEER) /* it is answered */
            say_fate(to, call);
    }
    say_attempts(to, call);
}

int pool_call_explain(const struct pool_call *call, char *text, size_t n)
{
    struct words to = {text, n, 0};

    if (call__state(call)->stage == CALL_OVER)
        say_over(&to, call);
    else
        say_under_way(&to, call);
    return finish(&to);
}
