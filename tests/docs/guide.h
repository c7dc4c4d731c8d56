/* guide.h - what the code in docs/guide.md takes for granted: the user's own functions. tests/lint/run compiles each
 * piece of it behind this. */
#include <ev.h>
#include <linkpool/linkpool.h>
#include <linkpool/testing.h>

struct request;
struct question;
struct lookup;

void on_leased(struct pool_lease *lease);
void send_request(struct request *request);
void answer_503(struct request *request);
struct question *ask(struct pool *pool);
bool all_told(void *question);
void use(struct lookup *lookup, const void *answer, size_t n);
void refuse(struct lookup *lookup, unsigned code, const void *words, size_t n);
void ask_elsewhere(struct lookup *lookup);
void fail(struct lookup *lookup, const char *why);
void on_group(struct pool_fanout *group);
