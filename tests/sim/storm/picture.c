/* picture.c - prints docs/storm.svg: how those who were cut off come back, by policy.
 *
 * Each strip is one world: 10,000 links to a server that is away for a minute and then shakes 1000 hands a second. In
 * all strips but the last they are links on their own, each with the policy that is named; in the last they are those
 * of one pool with all its defaults. Heights are logarithmic: one attempt is seen beside ten thousand. */
#include <math.h>
#include <stdio.h>

#include "tests/sim/storm/storm.h"

enum {
    LINKS = 10000,
    BINS = 300 /* half seconds */
};

static const double away = 60, bin = 0.5;
static const double left = 20, width = 760, strip = 84, head = 84, bars = 46; /* pixels */

struct strip {
    const char *name;
    const struct backoff_policy *policy; /* NULL: a pool */
};

struct seen {
    unsigned arrivals[BINS];
    unsigned attempts, peak;
    double back; /* seconds after the server's return */
};

static const struct backoff_policy fixed = {
    .size = sizeof(struct backoff_policy), .jitter = BACKOFF_NONE, .base = 3, .factor = 1, .cap = 3};
static const struct backoff_policy exponential = {
    .size = sizeof(struct backoff_policy), .jitter = BACKOFF_NONE, .base = 1, .factor = 2, .cap = 60};

static const struct strip strips[] = {
    {"every 3 s", &fixed},
    {"1 s, doubled to 60 s, without jitter", &exponential},
    {"backoff_linkd", &backoff_linkd},
    {"backoff_edge and backoff_heartbeat", &backoff_edge},
    {"backoff_grpc", &backoff_grpc},
    {"backoff_signalr", &backoff_signalr},
    {"backoff_default, each link on its own", &backoff_default},
    {"a pool, as it is by default", NULL},
};

static void watch(const struct backoff_policy *policy, struct seen *seen)
{
    struct storm storm;
    unsigned n;

    storm_begin(&storm, &(struct storm_plan){
                            .seed = 1, .rate = 1000, .round_trip = 0.001, .pools = 1, .links = LINKS, .alone = policy});
    storm_strike(&storm, TESTING_REFUSE);
    storm_run_to(&storm, away);
    storm_return(&storm);
    storm_run_to(&storm, BINS * bin);
    *seen = (struct seen){.back = storm.all_back - storm.returned};
    n = testing_peer_attempts(storm.server);
    for (unsigned i = storm.struck_attempts; i < n; i++) {
        unsigned k = (unsigned)((testing_peer_attempt_at(storm.server, i) - storm.struck) / bin);
        seen->attempts++;
        if (k < BINS && ++seen->arrivals[k] > seen->peak)
            seen->peak = seen->arrivals[k];
    }
    storm_end(&storm);
}

static double x_of(double seconds)
{
    return left + width * seconds / (BINS * bin);
}

/* From nothing to 10,000 and a little more, four decades. */
static double height_of(unsigned arrivals)
{
    double height = bars * (0.08 + 0.92 * log10(arrivals) / 4);

    return height < bars ? height : bars;
}

static void draw_bars(const struct seen *seen, double floor)
{
    printf("<path class=\"b\" d=\"");
    for (unsigned k = 0; k < BINS; k++)
        if (seen->arrivals[k])
            printf("M%.1f %.0fv-%.1f", x_of((k + 0.5) * bin), floor, height_of(seen->arrivals[k]));
    printf("\"/>\n");
}

/* 12345 is 12,345. */
static const char *in_thousands(unsigned n, char text[16])
{
    if (n < 1000)
        snprintf(text, 16, "%u", n);
    else
        snprintf(text, 16, "%u,%03u", n / 1000, n % 1000);
    return text;
}

static void draw_strip(const struct strip *this, const struct seen *seen, double top)
{
    double floor = top + strip - 12;
    char attempts[16], peak[16];

    printf("<g%s>\n<text class=\"n\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", this->policy ? "" : " class=\"ours\"", left,
        top + 16, this->name);
    printf("<text class=\"f\" x=\"%.0f\" y=\"%.0f\">%s attempts, %s at most in half a second, ", left + width, top + 16,
        in_thousands(seen->attempts, attempts), in_thousands(seen->peak, peak));
    if (isinf(seen->back))
        printf("not all back after %.0f s</text>\n", BINS * bin - away);
    else
        printf("all back after %.1f s</text>\n", seen->back);
    printf("<path class=\"l\" d=\"M%.0f %.0fh%.0f\"/>\n", left, floor, width);
    draw_bars(seen, floor);
    printf("</g>\n");
}

static void draw_time(double top, double bottom)
{
    printf("<rect class=\"a\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"/>\n", left, top, x_of(away) - left,
        bottom - top);
    for (int seconds = 0; seconds <= (int)(BINS * bin); seconds += 30)
        printf("<text class=\"t\" x=\"%.0f\" y=\"%.0f\">%d s</text>\n", x_of(seconds), bottom + 16, seconds);
}

static void begin_picture(double height)
{
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 %.0f\" font-family=\"sans-serif\" "
           "font-size=\"12\">\n<title>Attempts to connect over time, by policy</title>\n"
           "<style>.a{fill:#e9e9e9}.b{stroke:#5b6f86;stroke-width:2}.ours .b{stroke:#c4420a}.l{stroke:#999}"
           ".n{font-weight:bold}.f{text-anchor:end;fill:#444}.t{text-anchor:middle;fill:#444}</style>\n"
           "<rect width=\"800\" height=\"%.0f\" fill=\"#fff\"/>\n",
        height, height);
    printf("<text font-size=\"16\" font-weight=\"bold\" x=\"%.0f\" y=\"28\">10,000 links lose their server at once"
           "</text>\n<text x=\"%.0f\" y=\"48\">Attempts to connect in each half second, on a logarithmic scale: the "
           "tallest bars are 10,000 and more.</text>\n<text x=\"%.0f\" y=\"66\">The server refuses for a minute "
           "(grey), then shakes hands one at a time, 1000 a second.</text>\n",
        left, left, left);
}

int main(void)
{
    const unsigned n = sizeof strips / sizeof *strips;
    struct seen seen;

    begin_picture(head + n * strip + 30);
    draw_time(head, head + n * strip);
    for (unsigned i = 0; i < n; i++) {
        watch(strips[i].policy, &seen);
        draw_strip(&strips[i], &seen, head + i * strip);
    }
    printf("</svg>\n");
    return 0;
}
