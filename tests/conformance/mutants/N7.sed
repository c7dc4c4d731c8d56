# file: pool/call.c
# bytes are counted, and not bounded
s/call->request_size > pool->options\.max_call_bytes - pool->call_bytes/false/
