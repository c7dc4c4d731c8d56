# file: link/link.c
# all attempts of a link carry the number of the first
s/link->fsm\.generation = \+\+core->serial;/link->fsm.generation = link->fsm.generation ? link->fsm.generation : ++core->serial;/
