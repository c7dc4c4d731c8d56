# file: link/alone.c
# the owner hears of the wrong attempt
s/to->reconnect\(link, note->attempt, note->delay\)/to->reconnect(link, note->attempt + 1, note->delay)/
