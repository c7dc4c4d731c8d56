# file: link/alone.c
# the owner of a link that was reset is told of an orderly close
s/\.kind = NOTE_DISCONNECTED, \.reason = reason/.kind = NOTE_DISCONNECTED, .reason = reason == LINK_RESET ? LINK_CLOSED_BY_PEER : reason/
