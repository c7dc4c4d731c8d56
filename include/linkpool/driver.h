/* driver.h - the event loop as seen from below, and the system as seen from inside.
 *
 * All that comes from outside enters through the two tables of this header: struct driver_ops (a clock,
 * descriptors, one alarm, the end of a turn) and struct linkpool_env (socket calls, memory, random bits).
 * libev is one driver; virtual time (testing.h) is another. */
#ifndef LINKPOOL_DRIVER_H
#define LINKPOOL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop;
struct driver;

enum {
    LINKPOOL_READ = 1,
    LINKPOOL_WRITE = 2,
    LINKPOOL_UNWATCHED = 4 /* only told, and alone: the system will not watch the descriptor; nothing more comes */
};

/** A watched descriptor, all zero before its first use. It lies in the link, so that watching one allocates nothing of
 * its own. */
struct driver_io {
    void (*on)(struct driver_io *io, unsigned events); /* the watcher's: what came */
    void *room[6];                                     /* the driver's: an ev_io fits (48 bytes) */
};

/**
 * What a driver does. It calls nothing of the library from within these.
 *
 * The driver runs the links' descriptors before the user's watchers of the same poll, and `on_later` after
 * them, so that a FIN that came with the poll is seen before a link is handed out.
 */
struct driver_ops {
    /** Watches `fd`. The same number may be another socket than last time: it must reach the kernel.
     *  A system that refuses it later (no memory, max_user_watches) is told of as LINKPOOL_UNWATCHED; the watcher then
     *  stops it. @return 0, or LINKPOOL_ENOMEM. */
    int (*io_start)(struct driver *driver, struct driver_io *io, int fd, unsigned events);
    /** Changes the interest of a watched descriptor; lazily: no system call before the next poll needs one. */
    void (*io_events)(struct driver *driver, struct driver_io *io, unsigned events);
    /** Ends the watching: no call of `on` after it, this turn's included. Not watched: nothing happens. */
    void (*io_stop)(struct driver *driver, struct driver_io *io);
    /** Asks for `on_alarm` at `due`, in seconds on the driver's clock; INFINITY: no alarm. One alarm a driver: the
     *  latest call counts. It may ring early, and rings once. */
    void (*alarm)(struct driver *driver, double due);
    /** Asks for one `on_later` at the end of this turn; asked for from within `on_later`: after the next poll,
     *  which then does not block. */
    void (*later)(struct driver *driver);
    /** Frees the driver; also from inside its own callbacks. */
    void (*free)(struct driver *driver);
    /** Has something come for it with this poll, of which `on` is still to tell? Asked while `telling`, so that a link
     *  is not handed out within another's callback before its own end is seen. NULL: not known; links that are handed
     *  out within callbacks of the same pool are looked at by a system call then. */
    bool (*io_pending)(struct driver *driver, const struct driver_io *io);
};

/** A loop as the library sees it. The driver writes `now`, `turn` and `telling`; its owner (a pool, or the links on
 * their own of one thread) sets `owner` and the two callbacks. */
struct driver {
    const struct driver_ops *ops;
    double now;    /* seconds on a monotonic clock, as of this turn: a field, since asking the kernel costs 25 ns */
    uint64_t turn; /* one more with each poll */
    bool telling;  /* what came with the poll is being told: see io_pending() */
    void *owner;
    void (*on_alarm)(
        struct driver *driver); /* NULL, as the next: nobody owns it, or no longer; what was asked for is dropped */
    void (*on_later)(struct driver *driver);
    /** Time went on that `now` has not counted, DRIVER_SLEPT seconds or more: the machine slept. Told before what came
     * with the poll in which the driver finds out. NULL: nobody wants to know; a driver that cannot tell never calls
     * it. */
    void (*on_slept)(struct driver *driver);
};

/** Seconds of sleep that are told of: less than a second of it is what clocks are set by. */
#define DRIVER_SLEPT 1.0

/**
 * Makes a driver on a libev loop. Several may share one loop.
 *
 * @param loop  borrowed until driver_free().
 * @return the driver, or NULL with errno ENOMEM or EINVAL (no loop).
 */
struct driver *driver_ev_new(struct ev_loop *loop);

/** Frees a driver, also from inside its own callbacks. NULL: nothing happens. What is still watched is no longer. */
void driver_free(struct driver *driver);

/**
 * The system calls the library makes, each as its namesake: -1 and errno on failure. They call nothing of the
 * library. `data` is handed to each.
 */
struct linkpool_env {
    void *data;
    int (*socket)(void *data, int domain, int type, int protocol);
    int (*connect)(void *data, int fd, const struct sockaddr *address, socklen_t size);
    int (*bind)(void *data, int fd, const struct sockaddr *address, socklen_t size);
    int (*setsockopt)(void *data, int fd, int level, int name, const void *value, socklen_t size);
    int (*getsockopt)(void *data, int fd, int level, int name, void *value, socklen_t *size);
    ssize_t (*recvmsg)(void *data, int fd, struct msghdr *message, int flags);
    ssize_t (*sendmsg)(void *data, int fd, const struct msghdr *message, int flags);
    int (*shutdown)(void *data, int fd, int how);
    int (*close)(void *data, int fd);
    /** As realloc(); `was` is the size it had, 0 for none; a `size` of 0 frees and returns NULL. */
    void *(*realloc)(void *data, void *memory, size_t was, size_t size);
    /** 64 uniformly random bits. They need not be secret. */
    uint64_t (*random)(void *data);
};

/** The real system: its own calls, malloc, and random bits that the kernel gives at each draw. */
extern const struct linkpool_env linkpool_env_system;

#ifdef __cplusplus
}
#endif
#endif
