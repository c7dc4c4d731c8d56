# file: pool/internal.h pool/acquire.c
# red: T7 T34 XM4
# a target is down when one of its hosts is
s/target->n_down == target->pick.n;/target->n_down > 0;/
s/line->target->n_down == line->target->pick.n;/line->target->n_down > 0;/
