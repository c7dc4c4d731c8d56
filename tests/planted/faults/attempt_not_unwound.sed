# file: link/attempt.c
# a handle that could not be kept stays in memory
/^    if \(!entry->hh\.tbl\) \{/,/^    \}/ s/link__release\(env, entry, sizeof \*entry\);//
