# file: link/fsm.c
# events that mean nothing are not counted
s/^        counts->ignored\+\+;$/        counts->ignored += 0;/
