# file: link/core.c
# red: VC3
# each link that ends takes stack of its own
s/^        core->dead = link->next;$/&\n        volatile char deep[64];\n        deep[0] = 0;\n        free_dead(core);/
