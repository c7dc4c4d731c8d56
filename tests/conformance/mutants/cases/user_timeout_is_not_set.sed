# file: link/transport_tcp.c
# red: VD10
# user_timeout is ignored
s/^    if \(tcp && options->user_timeout > 0 && /    if (tcp \&\& options->user_timeout < 0 \&\& /
