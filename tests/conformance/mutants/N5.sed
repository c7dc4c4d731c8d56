# file: link/alone.c
# being ready does not reset the count
s/^static void on_proven\(struct link \*link\) \{.*\}$/static void on_proven(struct link *link) { (void)link; }/
