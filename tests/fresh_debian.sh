#!/usr/bin/env bash
# Tries ./run.sh and ./test.sh --quick as a new user would, in a bare Debian: debootstrap, chroot, a clean clone.
# By hand or nightly; needs root, debootstrap, about 4 GB of disk and the network. The host's mirror, apt proxy
# settings and certificates are used inside, so that it works behind a mirror.
#
#   tests/fresh_debian.sh [--dir DIR] [--suite bookworm] [--keep] [--full]
#
# --dir: where the system goes (default: a new directory under $TMPDIR; one that exists and holds a system is
# used again). --keep: leave it there. --full: the whole main job instead of its short form.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=bookworm directory='' keep=0 main_job_options=(--short)

say() { printf '\n== fresh_debian: %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit "${2:-1}"; }

parse_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --dir) directory=${2:?--dir needs a value}; shift 2 ;;
      --suite) suite=${2:?--suite needs a value}; shift 2 ;;
      --keep) keep=1; shift ;;
      --full) main_job_options=(); shift ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
      *) printf "error: unknown argument '%s' (see --help)\n" "$1" >&2; exit 2 ;;
    esac
  done
}

# The first Debian archive that the host's apt uses, from both kinds of source files; security archives aside.
host_mirror() {
  local files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  cat "${files[@]}" 2>/dev/null | awk '
    $1 == "URIs:" { for (i = 2; i <= NF; ++i) print $i }
    $1 == "deb" { for (i = 2; i <= NF; ++i) if ($i ~ /^(https?|file):/) { print $i; break } }' |
    grep -E '/debian/?$' | grep -v security | head -n 1
}

# Ends every mount below the directory, deepest first; --one-file-system keeps rm off what could not be ended.
clean_up() {
  local status=$? mount
  while read -r mount; do umount "$mount" 2>/dev/null || umount -l "$mount" || true; done \
    < <(awk -v root="$directory/" 'index($2, root) == 1 { print $2 }' /proc/self/mounts | sort -r)
  if [ "$keep" = 1 ]; then
    say "the system stays in $directory"
  elif [ "$made" = 1 ]; then
    rm -rf --one-file-system "$directory"
  fi
  exit "$status"
}

install_system() {
  local mirror=$1 include=() proxy=''
  if [[ $mirror == https:* ]]; then include=(--include=ca-certificates); fi
  if [ -e "$directory/etc/debian_version" ]; then
    say "using the system in $directory"
    return
  fi
  say "installing a minimal $suite from $mirror into $directory"
  proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy 2>/dev/null || true)
  http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase ${include[@]+"${include[@]}"} \
    "$suite" "$directory" "$mirror"
}

# The host's way to its mirror: proxy and certificate settings, names, certificates. No third-party archives.
configure_system() {
  local mirror=$1 file
  say "taking over the host's mirror, proxies and certificates"
  printf 'deb %s %s main\n' "$mirror" "$suite" > "$directory/etc/apt/sources.list"
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    if [ -f "$file" ] && grep -qE 'Proxy|Verify-Peer|CaInfo|Check-(Date|Valid-Until)' "$file"; then
      cp "$file" "$directory/etc/apt/apt.conf.d/90host-$(basename "$file")"
    fi
  done
  cp /etc/resolv.conf "$directory/etc/resolv.conf"
  cp /etc/hosts "$directory/etc/hosts"
  if [ -d /usr/local/share/ca-certificates ]; then
    mkdir -p "$directory/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$directory/usr/local/share/ca-certificates/"
  fi
  if ! mountpoint -q "$directory/proc"; then mount -t proc proc "$directory/proc"; fi
  # The few devices that programs expect.
  for file in null zero random urandom tty; do
    [ -e "$directory/dev/$file" ] || : > "$directory/dev/$file"
    mountpoint -q "$directory/dev/$file" || mount --bind "/dev/$file" "$directory/dev/$file"
  done
}

in_system() {
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    chroot "$directory" /bin/bash -c "$1" </dev/null
}

main() {
  parse_arguments "$@"
  [ "$(id -u)" -eq 0 ] || die "needs root (debootstrap, chroot, mount)"
  command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
  local mirror
  mirror=$(host_mirror) || true
  mirror=${mirror:-http://deb.debian.org/debian}
  made=0
  if [ -z "$directory" ]; then
    directory=$(mktemp -d "${TMPDIR:-/tmp}/fresh-debian-XXXXXX")
    made=1
  elif [ ! -e "$directory" ]; then
    mkdir -p "$directory"
    made=1
  elif [ -n "$(ls -A "$directory")" ] && [ ! -e "$directory/etc/debian_version" ]; then
    die "$directory is neither empty nor a Debian system"
  fi
  directory=$(cd "$directory" && pwd)
  [ "$directory" != / ] || die "--dir / is this machine"
  trap clean_up EXIT
  trap 'exit 130' INT TERM

  install_system "$mirror"
  configure_system "$mirror"
  say "cloning the committed state of $repository into it"
  rm -rf "$directory/root/dbx1000-durable"
  git -c safe.directory='*' clone --quiet --no-hardlinks "$repository" "$directory/root/dbx1000-durable"

  say "./run.sh ${main_job_options[*]:-}"
  in_system "cd /root/dbx1000-durable && ./run.sh ${main_job_options[*]:-}"
  in_system "cd /root/dbx1000-durable && test -s out/report.html && ls out/plots"
  say "./test.sh --quick"
  in_system "cd /root/dbx1000-durable && ./test.sh --quick"
  say "both commands work on a machine that has nothing but $suite"
}

main "$@"
