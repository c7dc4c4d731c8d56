# file: pool/host.c
# a host for whose timers there is no memory stays in memory
/^    if \(hold_heaps\(pool\)\) \{/,/^    \}/ s/^ *link__release.*$//
