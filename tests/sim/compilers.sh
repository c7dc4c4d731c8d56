#!/bin/bash
# compilers.sh - the same seeds give the same log under gcc and clang.
#
# Usage: compilers.sh DIRECTORY [FROM [COUNT]]    where to build
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "${1:?compilers.sh: the directory is missing}"
from=${2:-1} count=${3:-200}

# play COMPILER DIRECTORY: the last line of a run.
play()
{
    make -s -j2 CC="$1" BUILD="$2" KIND=debug WARNINGS=-w "$2/debug/sim" >"$2.log" 2>&1 || { tail "$2.log" >&2; return; }
    "$2/debug/sim" --from "$from" --count "$count" --jobs 2 --no-rarities | tail -n 1
}

gcc=$(play gcc "$1/gcc")
clang=$(play clang "$1/clang")
echo "gcc:   $gcc"
echo "clang: $clang"
[ -n "$gcc" ] && [ "$gcc" = "$clang" ]
