# file: pool/verdict.c
# red: T16
# the policy is asked twice for each failure
s/^    delay = backoff_delay\(&host->owner.terms->backoff,$/    (void)backoff_delay(\&host->owner.terms->backoff, \&(struct backoff_history){.attempt = host->failures}, 0.5);\n&/
