# file: link/alone.c
# a connect that fails at once is retried at once
s/return \(struct link_next\)\{LINK_EV_END_RETRY, delay\};/return (struct link_next){LINK_EV_END_RETRY, end->reason == LINK_UNREACHABLE ? 0 : delay};/
