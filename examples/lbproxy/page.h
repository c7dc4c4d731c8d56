/* page.h - the page for people, and for scripts that take lines apart. */
#ifndef LBPROXY_PAGE_H
#define LBPROXY_PAGE_H

#include <stdio.h>

struct crew;
struct report;

/** Writes the page: figures of all workers together, then what each has said in words. */
void page_write(FILE *page, const struct crew *crew, const struct report *sum);

#endif
