# file: link/alone.c
# the owner of a lost link is not told why
s/\.kind = NOTE_DISCONNECTED, \.reason = reason/.kind = NOTE_DISCONNECTED, .reason = reason == LINK_STOPPED ? reason : LINK_NO_REASON/
