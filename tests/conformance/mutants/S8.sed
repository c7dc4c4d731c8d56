# file: link/alone.c
# the owner who stops a connected link is not told that it is disconnected
s/if \(to->disconnected\)/if (to->disconnected \&\& note->reason != LINK_STOPPED)/
