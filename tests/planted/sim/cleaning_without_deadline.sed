# file: link/link.c
# the cleaning may last for ever
/^void link__clean/,/^\}/ s/arm\(link, link->owner->terms->reset_timeout\)/link__timer_clear(link__core(link), \&link->timer)/
