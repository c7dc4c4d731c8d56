# file: pool/host.c
# red: T107 XG14
# an idle_timeout of 0 ends idle links
s/^    while \(timeout > 0 && \(coldest/    while ((coldest/
s/^    if \(timeout <= 0 \|\| !host->n_idle\)$/    if (!host->n_idle)/
