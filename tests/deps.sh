#!/bin/bash
# deps.sh - installs what is missing of the named groups of tests/packages.txt. Silent where nothing is.
# Where there is no apt-get it names the packages and stops.
set -eu
packages=$(dirname "$0")/packages.txt

wanted=$(awk -v groups=" $* " 'index(groups, " " $1 " ") { for (i = 2; i <= NF; i++) print $i }' "$packages" | sort -u)
missing=$(for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
done)
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "linkpool needs these, by the names Debian 12 has for them, and apt-get is not here to install them:" >&2
    # shellcheck disable=SC2086
    echo $wanted >&2
    exit 1
fi
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
# shellcheck disable=SC2086
echo "installing" $missing
$sudo apt-get update -q >/dev/null
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
