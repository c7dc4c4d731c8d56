# file: pool/members.c
# red: T19 T28 T38
# a new list is dialled though nobody uses it
s/^            pool__keep_up\(target->hosts\[i\]\);$/            (void)0;\n                target->hosts[i]->start_asked = true;\n        pool__want(\&target->hosts[i]->line);/
