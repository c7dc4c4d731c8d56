# file: pool/verdict.c
# red: T36
# a probe waits until no other host is connecting
s/^    host->probe_due = true;$/    if (pool__of(host)->n_opening) {\n        link__timer_set(link__core(link), \&link->timer, link__now(link__core(link)) + 0.05);\n        return;\n    }\n&/
