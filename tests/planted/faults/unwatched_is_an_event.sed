# file: link/io.c
# what is not watched is taken for both events
/^static void on_io/,/^\}/ s/events & LINKPOOL_UNWATCHED\)/!events)/
