/* pool_call_fate.c - what a call says became of its request: each stage that it can be in, and each end that it can
 * meet there, over framed links, in one table. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"
#include "pool/call.h"
#include "tests/fakes/framed_stage.h"

/** Where a call is. */
enum at {
    AT_LINE,       /* for a channel */
    AT_REFUSED,    /* has one, and its protocol had no room for the request */
    AT_QUEUE,      /* taken by the protocol; not a byte has gone */
    AT_PARTLY,     /* some of it has gone */
    AT_SENT,       /* all of it */
    AT_HEADER_CUT, /* of an answer some bytes have come, from which nobody can know whose it is */
    AT_HEADER,     /* the answer's header */
    AT_GATHERED,   /* and some of its payload */
    AT_PIECES,     /* the same, in pieces: they have been told */
    AT_ERROR,      /* some of an ERROR, as AT_GATHERED */
    STAGES
};

static const char *const stage_names[STAGES] = {"in line", "refused by its protocol", "queued", "partly written",
    "written", "with some of a header", "with the header of an answer", "partly answered", "partly answered in pieces",
    "partly answered with an error"};

/** What it meets. */
enum end {
    END_LOST,     /* its link is reset */
    END_TIME,     /* its deadline passes */
    END_CANCEL,   /* it is given up */
    END_FREE,     /* its pool is freed */
    END_DRAIN,    /* its host is drained, at once */
    END_DENIED,   /* the peer leaves, and denies it */
    END_ACCEPTED, /* the peer leaves, accepts what it has the number of, and goes */
    END_UNDONE,   /* the peer says of it alone that it did nothing */
    END_RECYCLED, /* its link was to go once nobody holds it; then it is reset */
    ENDS
};

static const char *const end_names[ENDS] = {"its link is lost", "its time is up", "it is given up", "the pool is freed",
    "its host is drained", "a GOAWAY denies it", "a GOAWAY accepts it, and the link is lost", "ERROR not processed",
    "its link is recycled, and lost"};

/* What must be told. NONE: there is no such pair, since the end says nothing of that stage, or cannot come then. */
enum {
    NONE = -1,
    NOT = POOL_NOT_SENT,
    SENT = POOL_SENT_NO_ANSWER,
    PART = POOL_PARTIAL
};

/* clang-format off */
static const int fates[STAGES][ENDS] = {
    /*                 lost  time  cancel free  drain denied accepted undone recycled */
    [AT_LINE]       = {NONE, NOT,  NOT,   NOT,  NOT,  NONE,  NONE,    NONE,  NONE},
    [AT_REFUSED]    = {NOT,  NOT,  NOT,   NOT,  NOT,  NOT,   NOT,     NONE,  NOT},
    [AT_QUEUE]      = {NOT,  NOT,  NOT,   NOT,  NOT,  NOT,   NOT,     NONE,  NOT},
    [AT_PARTLY]     = {SENT, SENT, SENT,  SENT, SENT, NOT,   SENT,    NOT,   SENT},
    [AT_SENT]       = {SENT, SENT, SENT,  SENT, SENT, NOT,   SENT,    NOT,   SENT},
    [AT_HEADER_CUT] = {SENT, SENT, SENT,  SENT, SENT, NONE,  NONE,    NONE,  SENT},
    [AT_HEADER]     = {PART, PART, PART,  PART, PART, NONE,  NONE,    NONE,  PART},
    [AT_GATHERED]   = {PART, PART, PART,  PART, PART, NONE,  NONE,    NONE,  PART},
    [AT_PIECES]     = {PART, PART, PART,  PART, PART, NONE,  NONE,    NONE,  PART},
    [AT_ERROR]      = {PART, PART, PART,  PART, PART, NONE,  NONE,    NONE,  PART},
};
/* clang-format on */

static struct framed_stage stage;
static struct pool_call blocker, subject;
static unsigned told;
static unsigned char bytes[8000], others[8000];

static void on_done(struct pool_call *call)
{
    told += call == &subject;
}

static void on_part(struct pool_call *call, const void *piece, size_t n)
{
    (void)call, (void)piece, (void)n;
}

static void ask(struct pool_call *call, const char *text, size_t n)
{
    bytes[0] = 's';
    *call = (struct pool_call){.to = framed_address,
        .request = text ? (const void *)text : bytes,
        .request_size = n,
        .timeout = call == &subject ? 1 : 100,
        .part = call->part,
        .done = on_done};
    cr_assert(eq(int, pool_call(stage.world.pool, call), POOL_PENDING));
    fake_settle(&stage.world);
}

/* ---- stages ---- */

/* The server reads nothing any more, and a large request lies before all others. */
static void block(void)
{
    testing_peer_window(stage.server.peer, 0);
    ask(&blocker, (const char *)others, 5000);
}

static void begin_answer(uint8_t type, size_t some)
{
    unsigned char frame[FRAMED_HEAD + 300] = {0};

    framed__put_head(frame, type, 1, 1000);
    framed__put32(frame + FRAMED_HEAD, 300); /* an ERROR's code */
    framed_peer_say(&stage.server, frame, some);
    fake_settle(&stage.world);
}

static void come_to(enum at at)
{
    static const size_t of_answer[STAGES] = {[AT_HEADER_CUT] = FRAMED_HEAD - 1,
        [AT_HEADER] = FRAMED_HEAD,
        [AT_GATHERED] = FRAMED_HEAD + 300,
        [AT_PIECES] = FRAMED_HEAD + 300,
        [AT_ERROR] = FRAMED_HEAD + 300};

    if (at == AT_LINE)
        ask(&blocker, "x", 1);
    else if (at == AT_REFUSED || at == AT_QUEUE)
        block();
    else if (at == AT_PARTLY)
        testing_peer_window(stage.server.peer, 0);
    subject.part = at == AT_PIECES ? on_part : NULL;
    ask(&subject, at == AT_PARTLY || at == AT_REFUSED ? NULL : "subject",
        at == AT_PARTLY    ? 5000
        : at == AT_REFUSED ? 4000
                           : 7);
    if (at >= AT_HEADER_CUT)
        begin_answer(at == AT_ERROR ? FRAMED_ERROR : FRAMED_ANSWER, of_answer[at]);
}

/* It is where the test says. */
static void expect_at(enum at at)
{
    static const struct {
        uint8_t call, framed;
    } is[STAGES] = {{CALL_WAITING, 0}, {CALL_SENDING, FRAMED_REFUSED}, {CALL_SENT, FRAMED_QUEUED},
        {CALL_SENT, FRAMED_ASKED}, {CALL_SENT, FRAMED_ASKED}, {CALL_SENT, FRAMED_ASKED}, {CALL_SENT, FRAMED_ASKED},
        {CALL_SENT, FRAMED_ASKED}, {CALL_SENT, FRAMED_ANSWERING}, {CALL_SENT, FRAMED_ASKED}};
    const struct channel *channel = subject.lease.channel;
    const struct framed_channel *framed;

    cr_assert(eq(u8, call__state(&subject)->stage, is[at].call), "%s", stage_names[at]);
    cr_assert(eq(int, channel != NULL, at != AT_LINE));
    if (!channel)
        return;
    framed = link__stream_of((struct channel *)channel)->protocol.state;
    cr_assert(eq(u8, framed->stage, is[at].framed), "%s", stage_names[at]);
    cr_assert(eq(int, framed__of(&channel->link->protocol)->writer.first != NULL, at >= AT_REFUSED && at <= AT_PARTLY));
    cr_assert(eq(sz, subject.answer_size, at == AT_PIECES ? 300 : 0));
}

static void begin(enum at at)
{
    told = 0;
    framed_stage_begin(&stage);
    stage.server.holds = true;
    stage.options.max_queue = 4096;
    stage.options.max_channel_queue = 4096;
    stage.world.host.max_unanswered = 0;
    stage.world.host.max_channels = at == AT_LINE ? 1 : 0;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    struct framed_caller first = {0}; /* the handshake is over, and the limit known */
    framed_hold(&stage, &first);
    fake_give_back(&first.user);
    come_to(at);
    expect_at(at);
}

/* ---- ends ---- */

static struct pool_host *its_host(void)
{
    return fake_host(&stage.world, framed_address);
}

static void meet(enum end end)
{
    switch (end) {
    case END_TIME:
        fake_run(&stage.world, 1.01);
        break;
    case END_CANCEL:
        cr_assert(eq(int, pool_call_cancel(&subject), 0));
        break;
    case END_FREE:
        pool_free(stage.world.pool);
        stage.world.pool = NULL;
        break;
    case END_DRAIN:
        cr_assert(eq(int, pool_host_drain(its_host(), 0), 0));
        break;
    case END_DENIED:
        framed_session_goaway(stage.server.session, 0, 0, "");
        break;
    case END_UNDONE:
        framed_session_error(stage.server.session, 1, FRAMED_NOT_PROCESSED, "");
        break;
    case END_ACCEPTED:
        framed_session_goaway(stage.server.session, UINT32_MAX, 0, "");
        fake_settle(&stage.world);
        testing_peer_cut(stage.server.peer, LINK_RESET);
        break;
    case END_RECYCLED:
        cr_assert(eq(int, pool_host_recycle(its_host(), 0), 0));
        fake_settle(&stage.world);
        testing_peer_cut(stage.server.peer, LINK_RESET);
        break;
    default:
        testing_peer_cut(stage.server.peer, LINK_RESET);
        break;
    }
    fake_settle(&stage.world);
}

static int status_of(enum end end)
{
    static const int statuses[ENDS] = {[END_LOST] = LINKPOOL_ELOST,
        [END_TIME] = LINKPOOL_ETIMEDOUT,
        [END_CANCEL] = LINKPOOL_ECANCELLED,
        [END_FREE] = LINKPOOL_ECLOSED,
        [END_DRAIN] = LINKPOOL_ECLOSED,
        [END_DENIED] = LINKPOOL_ELOST,
        [END_ACCEPTED] = LINKPOOL_ELOST,
        [END_UNDONE] = LINKPOOL_ELOST,
        [END_RECYCLED] = LINKPOOL_ELOST};

    return statuses[end];
}

static bool was_heard(void)
{
    for (unsigned i = 0; i < stage.server.n_asked; i++)
        if (stage.server.asked[i].text[0] == 's')
            return true;
    return false;
}

/* What was said not to be sent does not go after all, and what has begun goes whole, where the link lives. */
static void expect_truth(enum at at, enum end end)
{
    bool lives = end == END_TIME || end == END_CANCEL || end == END_DENIED || end == END_UNDONE;

    testing_peer_window(stage.server.peer, SIZE_MAX);
    fake_run(&stage.world, 2);
    cr_assert(eq(str, stage.server.fault, ""));
    if (at < AT_PARTLY)
        cr_assert(not(was_heard()), "%s, %s", stage_names[at], end_names[end]);
    else if (lives && (at >= AT_SENT || end != END_DENIED))
        cr_assert(was_heard(), "%s, %s", stage_names[at], end_names[end]);
}

static void play(enum at at, enum end end)
{
    memset(&blocker, 0, sizeof blocker);
    memset(&subject, 0, sizeof subject);
    begin(at);
    meet(end);
    cr_assert(eq(int, subject.status, status_of(end)), "%s, %s", stage_names[at], end_names[end]);
    cr_assert(eq(int, (int)subject.fate, fates[at][end]), "%s, %s", stage_names[at], end_names[end]);
    cr_assert(eq(uint, told, end != END_CANCEL), "%s, %s", stage_names[at], end_names[end]);
    expect_truth(at, end);
    framed_stage_end(&stage);
}

Test(pool_call_fate, each_stage_meets_each_end)
{
    unsigned played = 0;

    for (enum at at = 0; at < STAGES; at++)
        for (enum end end = 0; end < ENDS; end++)
            if (fates[at][end] != NONE) {
                play(at, end);
                played++;
            }
    cr_assert(eq(uint, played, 68));
}

/* ---- leases of more than one request ---- */

static struct framed_caller asker, crowd;

/* Its first request is answered, and the next is in line as the link dies. */
Test(pool_call_fate, a_lease_that_was_answered_once_has_sent_whatever_became_of_its_next_request)
{
    framed_stage_begin(&stage);
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &asker, "one"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, asker.answers, 1));
    testing_peer_window(stage.server.peer, 0);
    framed_hold(&stage, &crowd);
    cr_assert(eq(int, framed_send(&crowd, others, 5000), 0));
    cr_assert(eq(int, framed_send(&asker, "two", 3), 0));
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_settle(&stage.world);
    cr_assert(eq(int, asker.user.lease.fate, POOL_PARTIAL));
    cr_assert(eq(int, crowd.user.lease.fate, POOL_SENT_NO_ANSWER));
    framed_stage_end(&stage);
}
