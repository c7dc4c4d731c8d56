/* env.c - the table of system calls, on the real system. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linkpool/driver.h"

/* Each assertion of Criterion 2.4.1 puts an int into a bit field of one bit. */
#pragma GCC diagnostic ignored "-Wconversion"

static const struct linkpool_env *env = &linkpool_env_system;

TestSuite(env, .timeout = 20);

static void make_pair(int ends[2], int type)
{
    cr_assert(eq(int, socketpair(AF_UNIX, type, 0, ends), 0));
}

static ssize_t send_bytes(int fd, char *bytes, size_t n)
{
    struct iovec part = {.iov_base = bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return env->sendmsg(env->data, fd, &message, 0);
}

static ssize_t receive_bytes(int fd, char *bytes, size_t n)
{
    struct iovec part = {.iov_base = bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return env->recvmsg(env->data, fd, &message, 0);
}

Test(env, a_socket_closes_on_exec_and_blocks_only_if_asked)
{
    int fd = env->socket(env->data, AF_INET, SOCK_STREAM, 0);

    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, fcntl(fd, F_GETFD), FD_CLOEXEC));
    cr_assert(eq(int, fcntl(fd, F_GETFL) & O_NONBLOCK, 0));
    cr_assert(eq(int, env->close(env->data, fd), 0));
    fd = env->socket(env->data, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    cr_assert(eq(int, fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK));
    cr_assert(eq(int, env->close(env->data, fd), 0));
}

Test(env, each_call_is_its_namesake)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr *name = (const struct sockaddr *)&address;
    socklen_t size = sizeof address;
    int server = env->socket(env->data, AF_INET, SOCK_STREAM, 0);
    int client = env->socket(env->data, AF_INET, SOCK_STREAM, 0);
    int on = 1, value = 0, accepted;
    socklen_t n = sizeof value;
    char byte = 'x';

    cr_assert(eq(int, env->setsockopt(env->data, server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0));
    cr_assert(eq(int, env->getsockopt(env->data, server, SOL_SOCKET, SO_REUSEADDR, &value, &n), 0));
    cr_assert(ne(int, value, 0));
    cr_assert(eq(int, env->bind(env->data, server, name, size), 0));
    cr_assert(eq(int, listen(server, 1), 0));
    cr_assert(eq(int, getsockname(server, (struct sockaddr *)&address, &size), 0));
    cr_assert(eq(int, env->connect(env->data, client, name, size), 0));
    accepted = accept(server, NULL, NULL);
    cr_assert(ge(int, accepted, 0));
    cr_assert(eq(long, send_bytes(client, &byte, 1), 1));
    byte = 0;
    cr_assert(eq(long, receive_bytes(accepted, &byte, 1), 1));
    cr_assert(eq(chr, byte, 'x'));
    cr_assert(eq(int, env->shutdown(env->data, client, SHUT_WR), 0));
    cr_assert(eq(long, receive_bytes(accepted, &byte, 1), 0));
    cr_assert(eq(int, env->close(env->data, accepted), 0));
    cr_assert(eq(int, env->close(env->data, client), 0));
    cr_assert(eq(int, env->close(env->data, server), 0));
}

Test(env, a_failure_is_minus_one_and_errno)
{
    char byte = 'x';

    errno = 0;
    cr_assert(eq(long, send_bytes(-1, &byte, 1), -1));
    cr_assert(eq(int, errno, EBADF));
    errno = 0;
    cr_assert(eq(long, receive_bytes(-1, &byte, 1), -1));
    cr_assert(eq(int, errno, EBADF));
    errno = 0;
    cr_assert(eq(int, env->close(env->data, -1), -1));
    cr_assert(eq(int, errno, EBADF));
}

Test(env, sending_to_one_who_left_is_an_error_not_a_signal)
{
    int ends[2];
    char byte = 'x';

    make_pair(ends, SOCK_STREAM);
    close(ends[1]);
    errno = 0;
    cr_assert(eq(long, send_bytes(ends[0], &byte, 1), -1));
    cr_assert(eq(int, errno, EPIPE));
    close(ends[0]);
}

Test(env, a_descriptor_that_is_received_closes_on_exec)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 'x';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int ends[2], received;

    make_pair(ends, SOCK_STREAM);
    control.header =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &ends[0], sizeof(int));
    cr_assert(eq(long, env->sendmsg(env->data, ends[0], &message, 0), 1));
    memset(&control, 0, sizeof control);
    message.msg_controllen = sizeof control;
    cr_assert(eq(long, env->recvmsg(env->data, ends[1], &message, 0), 1));
    memcpy(&received, CMSG_DATA(&control.header), sizeof(int));
    cr_assert(eq(int, fcntl(received, F_GETFD), FD_CLOEXEC));
    close(received);
    close(ends[0]);
    close(ends[1]);
}

/* Calls cut off by signals: the third tick of a timer does what the call waits for. */

static volatile sig_atomic_t ticks;
static int tick_end;
static char big[1 << 20];

static void start_ticks(void (*on_tick)(int))
{
    struct sigaction action = {.sa_handler = on_tick}; /* without SA_RESTART */
    struct itimerval each_ms = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};

    cr_assert(eq(int, sigaction(SIGALRM, &action, NULL), 0));
    cr_assert(eq(int, setitimer(ITIMER_REAL, &each_ms, NULL), 0));
}

static void stop_ticks(void)
{
    struct itimerval never = {{0}, {0}};

    cr_assert(eq(int, setitimer(ITIMER_REAL, &never, NULL), 0));
}

static void write_on_third(int signal)
{
    (void)signal;
    if (++ticks == 3 && write(tick_end, "x", 1) != 1)
        abort();
}

static void drain_on_third(int signal)
{
    (void)signal;
    if (++ticks == 3 && read(tick_end, big, sizeof big) <= 0)
        abort();
}

Test(env, a_read_cut_off_by_a_signal_is_made_again)
{
    int ends[2];
    char byte = 0;

    make_pair(ends, SOCK_STREAM);
    tick_end = ends[1];
    start_ticks(write_on_third);
    cr_assert(eq(long, receive_bytes(ends[0], &byte, 1), 1));
    stop_ticks();
    cr_assert(eq(chr, byte, 'x'));
    cr_assert(ge(int, ticks, 3));
    close(ends[0]);
    close(ends[1]);
}

Test(env, a_write_cut_off_by_a_signal_is_made_again)
{
    int ends[2];
    char byte = 'x';

    make_pair(ends, SOCK_STREAM);
    while (send(ends[0], &byte, 1, MSG_DONTWAIT) == 1)
        ;
    tick_end = ends[1];
    start_ticks(drain_on_third);
    cr_assert(eq(long, send_bytes(ends[0], &byte, 1), 1));
    stop_ticks();
    cr_assert(ge(int, ticks, 3));
    close(ends[0]);
    close(ends[1]);
}

/* Memory. */

Test(env, memory_grows_keeps_what_it_holds_and_goes_at_size_0)
{
    char *memory = env->realloc(env->data, NULL, 0, 4);

    cr_assert(ne(ptr, memory, NULL));
    memcpy(memory, "abc", 4);
    memory = env->realloc(env->data, memory, 4, 1 << 20);
    cr_assert(ne(ptr, memory, NULL));
    cr_assert(eq(str, memory, "abc"));
    cr_assert(eq(ptr, env->realloc(env->data, memory, 1 << 20, 0), NULL));
    cr_assert(eq(ptr, env->realloc(env->data, NULL, 0, 0), NULL));
}

/* Random bits. */

Test(env, each_random_bit_is_seen_both_ways)
{
    uint64_t ones = 0, zeros = 0;

    for (int i = 0; i < 100; i++) { /* a sound generator fails once in 2^93 runs */
        uint64_t bits = env->random(env->data);

        ones |= bits;
        zeros |= ~bits;
    }
    cr_assert(eq(u64, ones, UINT64_MAX));
    cr_assert(eq(u64, zeros, UINT64_MAX));
}

Test(env, a_child_draws_other_numbers_than_its_parent)
{
    int ends[2], status;
    uint64_t ours, theirs;
    pid_t child;

    env->random(env->data);
    make_pair(ends, SOCK_STREAM);
    child = fork();
    cr_assert(ge(int, child, 0));
    ours = env->random(env->data);
    if (child == 0)
        _exit(write(ends[1], &ours, sizeof ours) != (ssize_t)sizeof ours);
    cr_assert(eq(long, read(ends[0], &theirs, sizeof theirs), (long)sizeof theirs));
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, status, 0));
    cr_assert(ne(u64, ours, theirs));
    close(ends[0]);
    close(ends[1]);
}

Test(env, what_has_a_name_or_several_parts_is_sent_and_received_as_it_is)
{
    char out[] = "abcd", in[4];
    struct iovec sent[2] = {{out, 1}, {out + 1, 3}}, received[2] = {{in, 3}, {in + 3, 1}}, whole = {in, sizeof in};
    struct msghdr message = {.msg_iov = sent, .msg_iovlen = 2}, parts = {.msg_iov = received, .msg_iovlen = 2};
    struct sockaddr_un from = {.sun_family = AF_UNIX};
    struct msghdr named = {.msg_iov = &whole, .msg_iovlen = 1, .msg_name = &from, .msg_namelen = sizeof from};
    int ends[2];

    make_pair(ends, SOCK_DGRAM);
    for (int i = 0; i < 2; i++) {
        memset(in, 0, sizeof in);
        cr_assert(eq(long, env->sendmsg(env->data, ends[0], &message, 0), 4));
        cr_assert(eq(long, env->recvmsg(env->data, ends[1], i ? &named : &parts, 0), 4));
        cr_assert(eq(int, memcmp(in, out, 4), 0));
    }
    cr_assert(lt(uint, named.msg_namelen, sizeof from)); /* it was filled in: this end has none */
    close(ends[0]);
    close(ends[1]);
}
