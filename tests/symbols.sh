#!/bin/bash
# symbols.sh - prints include/linkpool/symbols.h as the headers would have it: a pragma for each public function and
# object whose name does not begin with linkpool_ already. `symbols.sh names` prints what the library is to export.
set -eu
cd "$(dirname "$0")/.."

names()
{
    ctags --quiet --options=NONE --language-force=C --kinds-C=px -x --_xformat=%N include/linkpool/*.h | LC_ALL=C sort -u
}

if [ "${1:-}" = names ]; then
    names | sed 's/^linkpool_//; s/^/linkpool_/'
    exit
fi
sed '/^#define LINKPOOL_SYMBOLS_H/q' include/linkpool/symbols.h
names | sed -n '/^linkpool_/!s/.*/#pragma redefine_extname & linkpool_&/p'
echo '#endif'
