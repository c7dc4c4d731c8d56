# file: link/alone.c
# the retry timer connects no more after fifty failures
s/\|\| state == LINK_BACKOFF\)/|| (state == LINK_BACKOFF \&\& alone->history.attempt < 50))/
