# file: pool/verdict.c
# red: XH17
# a host whose link dies just as it was ready is not tried again
s/^    if \(belongs_to_the_last\) \{$/    if (was_ready(end))\n        return (struct link_next){LINK_EV_END_OUT, 0};\n&/
