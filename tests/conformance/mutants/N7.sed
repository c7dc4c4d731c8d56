# file: pool/call.c
# bytes are counted, and not bounded
s/call->request_size > most - others/false/
