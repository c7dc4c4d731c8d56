# file: link/transport_tcp.c
# a close() that fails is made again
s/^        env->close\(env->data, tl->fd\);/        while (env->close(env->data, tl->fd) \&\& errno == EINTR) {}/
