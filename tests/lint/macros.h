/* macros.h - utlist's and uthash's loops as cppcheck should take them: it reads no system headers. */
#define DL_FOREACH(head, el)           for ((el) = (head); (el); (el) = (el)->next)
#define DL_FOREACH2(head, el, link)    for ((el) = (head); (el); (el) = (el)->link)
#define DL_FOREACH_SAFE(head, el, tmp) for ((el) = (head); (el) && ((tmp) = (el)->next, 1); (el) = (tmp))
#define LL_FOREACH(head, el)           for ((el) = (head); (el); (el) = (el)->next)
#define HASH_ITER(hh, head, el, tmp)   for ((el) = (head); (el) && ((tmp) = (el)->hh.next, 1); (el) = (tmp))
