# file: link/alone.c
# the owner of a link that is given up is not told why
s/\.kind = NOTE_STOPPED, \.reason = end->reason/.kind = NOTE_STOPPED, .reason = LINK_NO_REASON/
