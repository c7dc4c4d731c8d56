# file: link/fsm.c
# an event of an older attempt is taken for one of this
s/if \(generation != fsm->generation\)/if (generation > fsm->generation)/
