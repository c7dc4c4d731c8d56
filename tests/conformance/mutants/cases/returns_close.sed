# file: pool/release.c
# red: T84 XG9 XJ3 XK13
# a link that comes back is closed
/^static enum link_reason ends_at_return/,/^}/ s/^    return LINK_NO_REASON;$/    return LINK_DRAINED;/
s/^    return host->is_plain && /    return false \&\& /
