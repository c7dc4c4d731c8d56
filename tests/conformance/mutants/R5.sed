# file: pool/call.c
# a call does not wait for ready
s/call->lease\.flags = call->flags & POOL_CALL_WAIT_FOR_READY;/call->lease.flags = 0;/
