# file: link/link.c
# the place of a link that is not to be stays taken
/^    if \(!\(link = link__alloc/,/^    \}/ s/link__heap_drop\(&core->timers\);//
