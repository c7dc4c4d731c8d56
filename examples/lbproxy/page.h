/* page.h - the status page's text, from the workers' last reports. */
#ifndef LBPROXY_PAGE_H
#define LBPROXY_PAGE_H

#include <stddef.h>

struct crew;

/** Writes the page. The caller frees it; NULL: out of memory. */
char *page_write(const struct crew *crew, size_t *size);

#endif
