/* ledger.h - a byte for each call id, in a file that outlives whoever writes it, kill -9 too: what the adding server
 * has counted, and what the adders were told. tests/framed/killed.py compares the two. */
#ifndef LINKPOOL_TESTS_FRAMED_LEDGER_H
#define LINKPOOL_TESTS_FRAMED_LEDGER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEDGER_IDS = 1 << 24
};

/* What an adder was told of an id; 0: it was not told yet, or the id not used. */
enum ledger_told {
    LEDGER_ANSWERED = 1,
    LEDGER_NOT_SENT = 2, /* and given up */
    LEDGER_MAYBE = 3     /* no answer: it was counted or not */
};

static inline unsigned char *ledger_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, LEDGER_IDS) == 0)
        map = mmap(NULL, LEDGER_IDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(fd);
    return map;
}

#endif
