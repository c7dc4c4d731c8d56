# file: pool/line.c
# red: XC5
# whenever the line moves on, the deadlines of those in it begin anew
s/^    if \(--line->n\) \{$/&\n        for (struct pool_claim *c = line->first; c; c = c->next)\n            if (c->has_own_time \&\& c->deadline < INFINITY) {\n                c->deadline = pool__now(pool) + pool__lease(c)->timeout;\n                link__timer_set(\&pool->core, \&c->wait.timer, c->deadline);\n            }/
