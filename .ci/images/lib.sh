# shellcheck shell=bash
# What the scripts that build images have in common; they source it. An image
# holds a server of this machine, the libraries it needs, and nothing else.
set -euo pipefail

if ! command -v ldd >/dev/null 2>&1; then
  echo "images: they are built on Linux only; name others in QUOTABENCH_REDIS_IMAGE and QUOTABENCH_POSTGRES_IMAGE" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -m 755 "$root"

# copy FILE... puts files of this machine into the image, at the same path.
copy() {
  local f
  for f in "$@"; do
    mkdir -p "$root$(dirname "$f")"
    cp -L "$f" "$root$f"
  done
}

# program FILE... does so with the shared libraries that they are linked to.
program() {
  local f lib
  for f in "$@"; do
    copy "$f"
    for lib in $(ldd "$f" | grep -oE '/[^ ]+' | sort -u); do
      if [ ! -e "$root$lib" ]; then copy "$lib"; fi
    done
  done
}

# account NAME HOME makes the user that the server runs as, number 999, and the
# folder that it owns.
account() {
  mkdir -p "$root/etc" "$root$2"
  chmod 700 "$root$2"
  printf 'root:x:0:0:root:/:/bin/sh\n%s:x:999:999:%s:%s:/bin/sh\n' "$1" "$1" "$2" >"$root/etc/passwd"
  printf 'root:x:0:\n%s:x:999:\n' "$1" >"$root/etc/group"
  home=$2
}

# image NAME INSTRUCTION... makes it, and prints its name.
image() {
  local name=$1 instruction changes=()
  shift
  for instruction in "$@"; do changes+=(--change "$instruction"); done
  mkdir -m 1777 "$root/tmp"
  # In two steps: files have the same owners whoever builds the image.
  tar -C "$root" --owner=0 --group=0 --exclude=".$home" -cf "$work/tar" .
  tar -C "$root" --owner=999 --group=999 -rf "$work/tar" ".$home"
  docker import "${changes[@]}" "$work/tar" "$name" >/dev/null
  echo "$name"
}
