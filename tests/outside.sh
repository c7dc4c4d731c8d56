#!/bin/bash
# outside.sh - builds the programs of tests/unit/outside/ against what `make install` puts in place, as a user would, and
# runs them: with the static library, and with the shared one.
#
# Usage: outside.sh STAGE    where `make install PREFIX=/usr DESTDIR=STAGE` has put it; CC and CFLAGS as make's
set -eu
stage=${1:?outside.sh: the stage is missing}
mkdir -p "$stage/bin"
cp "$(dirname "$0")"/unit/outside/*.[ch] "$stage/bin" # nothing of the tree is near them
cd "$stage/bin"

export PKG_CONFIG_PATH=$stage/usr/lib/pkgconfig
# shellcheck disable=SC2206
flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wshadow -Werror ${CFLAGS:-}
    $(pkg-config --define-prefix --cflags linkpool))
dynamic=$(pkg-config --define-prefix --libs linkpool)
static=$(pkg-config --define-prefix --static --libs linkpool | sed 's/-llinkpool/-l:liblinkpool.a/')

test -f "$stage/usr/share/man/man7/linkpool-framed.7" # which framed.h names

# program NAME SOURCE...
program()
{
    local name=$1
    shift
    # shellcheck disable=SC2086
    ${CC:-cc} "${flags[@]}" "$@" $static -o "$name"
    # shellcheck disable=SC2086
    ${CC:-cc} "${flags[@]}" "$@" $dynamic -lev -o "$name.shared"
    "./$name"
    LD_LIBRARY_PATH=$stage/usr/lib "./$name.shared"
}
program own_names own_names.c own_names_user.c
program mux_test mux_test.c mux.c stage.c
program hop_test hop_test.c hop.c stage.c
program lines_test lines_test.c lines.c stage.c
