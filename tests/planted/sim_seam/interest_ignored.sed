# file: link/driver_ev.c
# a change of interest changes nothing
/^static void change_io/,/^}/s/^    ev_io_modify\(watcher, \(int\)events\);$/    ;/
