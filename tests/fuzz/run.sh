#!/bin/bash
# run.sh - lets libFuzzer try the fuzz targets, one after the other, each from its corpus. What it finds is left in
# BUILD: crash-* where something did not hold, and new inputs in TARGET/. The exit status is 0 when all held.
#
# Usage: run.sh SECONDS BUILD [TARGET...]    seconds for each target: request, answer, frame, calls
#
# To take what was found into the corpus, without what adds nothing:
#   BUILD/fuzz-TARGET -set_cover_merge=1 NEW_DIRECTORY BUILD/TARGET tests/fuzz/corpus/TARGET
set -eu
[ $# -ge 2 ] || { sed -n 's/^# Usage: //p' "$0" >&2; exit 2; }
seconds=$1
mkdir -p "$2"
build=$(cd "$2" && pwd)
shift 2
targets=${*:-request answer frame calls}
cd "$(dirname "$0")/../.."

flags=(-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -DLINKPOOL_CHECK -Iinclude -I. -O1 -g
    -fno-omit-frame-pointer "-fsanitize=address,undefined,fuzzer-no-link" -fno-sanitize-recover=all)
llhttp=(/usr/share/llhttp/*.c)
libs=(-lev -lm)
if pkg-config --exists libllhttp 2>/dev/null; then
    llhttp=()
    mapfile -t -O 2 libs < <(pkg-config --libs libllhttp | tr ' ' '\n')
else
    flags+=(-isystem /usr/share/include/llhttp)
fi

# What a target is made of, beside its own file: lbproxy's messages, or the library.
sources_of()
{
    if [ "$1" = frame ] || [ "$1" = calls ]; then
        printf '%s\n' backoff/*.c link/*.c link/testing/*.c pool/*.c tests/fakes/framed_server.c
    else
        printf '%s\n' tests/message/{driver,check,oracle}.c examples/lbproxy/message/*.c "${llhttp[@]}"
    fi
}

for target in $targets; do
    objects=()
    for source in $(sources_of "$target"); do
        object=$build/$(echo "$source" | tr / _).o
        objects+=("$object")
        clang "${flags[@]}" -w -c "$source" -o "$object"
    done
    clang "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/$target.c" "${objects[@]}" "${libs[@]}" -o "$build/fuzz-$target"
done

for target in $targets; do
    mkdir -p "$build/$target"
    dict=(-dict=tests/fuzz/http.dict)
    case $target in frame | calls) dict=() ;; esac
    echo "$target: $seconds s"
    "$build/fuzz-$target" -max_total_time="$seconds" -max_len=1024 -timeout=10 "${dict[@]}" -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$build/" "$build/$target" "tests/fuzz/corpus/$target" \
        >"$build/$target.log" 2>&1 || {
        grep -E 'does not hold|ERROR|runtime error|SUMMARY|Test unit' "$build/$target.log"
        echo "$target: a fault; see $build/$target.log"
        exit 1
    }
    sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$build/$target.log"
done
