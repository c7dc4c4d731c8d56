/* hints.h - what the compiler cannot know of a function: that it is called seldom, or always. */
#ifndef LINKPOOL_LINK_HINTS_H
#define LINKPOOL_LINK_HINTS_H

/* For what happens seldom within what happens always: it stays out of the way. */
#define LINK_RARE __attribute__((noinline))
/* For what happens always, in several places: it is made anew for each, without what does not happen there. Where
 * nothing is made fast, as where branches are counted, it is there once. */
#ifdef __OPTIMIZE__
#define LINK_OFTEN inline __attribute__((always_inline))
#else
#define LINK_OFTEN inline
#endif

#endif
