# file: link/transport_tcp.c
# red: VB6 XH9
# what is sent is sent again
s/^    return env->sendmsg\(env->data, tl->fd, &message, MSG_NOSIGNAL\);$/    env->sendmsg(env->data, tl->fd, \&message, MSG_NOSIGNAL);\n&/
