# file: link/alone.c
# red: XF12
# what was to be told of a link is told though it was freed
/^void link_free/,/^}/ s/^    delist\(alone\);$//
s/^    for \(unsigned i = 0; i < n && !alone->freed; i\+\+\)$/    for (unsigned i = 0; i < n; i++)/
