#!/usr/bin/env bash
# toolchain-with-source.sh FOLDER
#
# Makes FOLDER/toolchain: the active Rust toolchain together with the library source of the same version, which
# cargo's -Zbuild-std needs. The source is Debian's package rust-src; the toolchain's files are linked, not copied,
# where FOLDER lies on the same file system. Does nothing if it is there already for this version.
# Exit status 3: Debian has no such version.
set -euo pipefail

mkdir -p "$1"
folder=$(cd "$1" && pwd)
version=$(rustc --version | awk '{ print $2 }')
if [ "$(cat "$folder/version" 2>/dev/null || true)" = "$version" ]; then
    exit 0
fi
command -v apt-get >/dev/null || { echo "apt-get is not here" >&2; exit 3; }
rm -rf "$folder/toolchain" "$folder/source" "$folder/apt"

# Package lists of its own: the system's stay as they are.
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/source"
: > "$folder/apt/status"
mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] $mirror trixie-backports main" > "$folder/apt/sources.list"
options=(
    -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status"
    -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root
)
apt-get "${options[@]}" -qq update
package=$(apt-cache "${options[@]}" madison rust-src | awk '{ print $3 }' | grep -m 1 "^$version+" || true)
[ -n "$package" ] || { echo "Debian has no rust-src $version" >&2; exit 3; }
(cd "$folder/apt" && apt-get "${options[@]}" -qq download "rust-src=$package")
dpkg -x "$folder"/apt/rust-src_*.deb "$folder/source"
rm -rf "$folder/apt"

sysroot=$(rustc --print sysroot)
cp -al "$sysroot" "$folder/toolchain" 2>/dev/null || { rm -rf "$folder/toolchain"; cp -a "$sysroot" "$folder/toolchain"; }
mkdir -p "$folder/toolchain/lib/rustlib/src"
ln -s "$folder/source/usr/src/rustc-$version" "$folder/toolchain/lib/rustlib/src/rust"
echo "$version" > "$folder/version"
