# file: link/alone.c
# being ready does not reset the count
s/^    of\(link\)->history = \(struct backoff_history\)\{0\};$/    (void)link;/
