# file: pool/verdict.c
# red: VG4 VG5
# attempts that time out neither lower the limit of opening nor, beside a ready link, pace the next
s/^    if \(was_opening\(end\) && end->reason == LINK_TIMED_OUT\)$/    if (false)/
/^static struct link_next failure/,/^}/ s/^    if \(other_attempts\(host, end\)\) \{.*$/    if (!was_ready(end) \&\& others_are_ready(host, end))\n        return rest;\n&/
