# file: pool/call_link.c
# whoever finds others that wait to be sent goes before them
s/^        queue\(link, call__state\(call\)\);/        (void)queue, queue_first(link, call__state(call));/
