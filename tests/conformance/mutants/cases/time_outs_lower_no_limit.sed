# file: pool/verdict.c
# red: VG5
# attempts that time out leave the limit of opening as it is
s/^    if \(was_opening\(end\) && end->reason == LINK_TIMED_OUT\)$/    if (false)/
