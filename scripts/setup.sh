#!/usr/bin/env bash
# Installs with apt what building, running, testing (--tests), `make check` and `make coverage` (--dev) need. The one
# place with package names.
#
#   scripts/setup.sh [--tests] [--dev]    install what is missing; silent, offline and fast when nothing is
#   scripts/setup.sh --missing [--tests] [--dev]   print the missing packages, install nothing
#   scripts/setup.sh --python [MODULE...]   print a python3 that has these (matplotlib, numpy and yaml)
#   scripts/setup.sh --compiler   print a g++ that is new enough (version 12 or later)
#   scripts/setup.sh --jobs       print how many compilers cores and memory allow at a time
#
# Called by run.sh, test.sh and tests/fresh_debian.sh. Root installs directly; others need a sudo that asks no
# password, or get the one line to run. DBX_SKIP_SETUP=1 trusts the machine as it is.
set -euo pipefail

# a|b means: any of them will do, and the first one that apt knows is installed.
run_packages=(
  make g++ git ca-certificates
  libjemalloc-dev libboost-program-options-dev libboost-dev libfmt-dev nlohmann-json3-dev
  libisal-dev libxxhash-dev liburing-dev libpmem-dev libnuma-dev
  python3 python3-matplotlib python3-numpy python3-yaml fonts-dejavu-core
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev libboost-context-dev
  "clang-14|clang" "libclang-rt-14-dev|libclang-rt-dev"
)
# clang's of this version alone: another one formats and warns differently.
dev_packages=(clang-format-14 clang-tidy-14 gcovr)
gxx_version_min=12

say() { printf 'setup: %s\n' "$*" >&2; }

# Prints those of "$@" that are not installed, one a line, alternatives as they stand.
missing_packages() {
  local names=() entry alternative installed
  for entry in "$@"; do names+=(${entry//|/ }); done
  # dpkg-query fails when it does not know a name; what it prints about the others is still right.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${names[@]}" 2>/dev/null || true)
  for entry in "$@"; do
    for alternative in ${entry//|/ }; do
      if grep -qx "installed $alternative" <<<"$installed"; then continue 2; fi
    done
    printf '%s\n' "$entry"
  done
}

# Prints the first alternative of $1 that apt can install; the first one when it knows none.
choose_alternative() {
  local alternative
  for alternative in ${1//|/ }; do
    if [ -n "$(apt-cache madison "$alternative" 2>/dev/null)" ]; then
      printf '%s\n' "$alternative"
      return
    fi
  done
  printf '%s\n' "${1%%|*}"
}

find_python() {
  local candidate modules=("${@:-matplotlib}")
  if [ $# -eq 0 ]; then modules+=(numpy yaml); fi
  for candidate in python3 /usr/bin/python3; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$(printf 'import %s\n' "${modules[@]}")" >/dev/null 2>&1
    then
      command -v "$candidate"
      return
    fi
  done
  say "error: no python3 can import ${modules[*]} (Debian: python3-matplotlib, python3-yaml)"
  return 1
}

find_compiler() {
  local candidate version
  for candidate in ${CXX:-} g++ g++-12 g++-13 g++-14 g++-15; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    version=$("$candidate" -dumpversion 2>/dev/null || echo 0)
    if [ "${version%%.*}" -ge "$gxx_version_min" ] || [[ $candidate == *clang* ]]; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# A compiler takes up to 1.5 GiB on the largest translation units.
build_jobs() {
  local cores memory_kib by_memory
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kib / (3 << 19)))
  printf '%s\n' "$((by_memory < 1 ? 1 : by_memory < cores ? by_memory : cores))"
}

# An installation that was cut off (a power failure, a killed apt) keeps apt-get from installing anything else.
was_interrupted() { [ -n "$(dpkg --audit 2>/dev/null)" ]; }
mending_line="dpkg --configure -a"

# Runs apt-get as root, or through sudo; $1 is "" or "sudo -n".
install_packages() {
  local prefix=$1
  shift
  if was_interrupted; then
    say "an earlier installation was interrupted; mending it: $mending_line"
    $prefix env DEBIAN_FRONTEND=noninteractive $mending_line </dev/null >&2 ||
      { say "error: that failed; mend it as root, then try again:  $mending_line && apt-get -f install"; return 1; }
  fi
  local options=(-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  $prefix env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" -q update </dev/null >&2
  local packages=() entry
  for entry in "$@"; do packages+=("$(choose_alternative "$entry")"); done
  say "installing: ${packages[*]}"
  $prefix env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" -q -y install --no-install-recommends \
    "${packages[@]}" </dev/null >&2
}

main() {
  local action=install wanted=("${run_packages[@]}") argument
  for argument in "$@"; do
    case $argument in
      --tests) wanted+=("${test_packages[@]}") ;;
      --dev) wanted+=("${test_packages[@]}" "${dev_packages[@]}") ;;
      --missing) action=print ;;
      --python) shift; find_python "$@"; return ;;
      --jobs) build_jobs; return ;;
      --compiler)
        find_compiler && return
        say "error: no g++ of version $gxx_version_min or later; install g++-$gxx_version_min, or set CXX"
        return 1 ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; return ;;
      *) say "error: unknown argument '$argument' (see --help)"; return 2 ;;
    esac
  done
  if [ "${DBX_SKIP_SETUP:-0}" = 1 ]; then return; fi
  if ! command -v dpkg-query >/dev/null 2>&1; then
    say "this is not a Debian or Ubuntu; make sure you have: ${wanted[*]}"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  # An older Ubuntu's g++ is version 11 or less; a newer one stands beside it under its own name.
  if [ "$action" = install ] && [[ " ${missing[*]} " != *" g++ "* ]] && ! find_compiler >/dev/null; then
    missing+=("g++-$gxx_version_min|g++-13|g++-14")
  fi
  if [ ${#missing[@]} -eq 0 ]; then return; fi
  if [ "$action" = print ]; then printf '%s\n' "${missing[@]}"; return; fi

  say "missing packages: ${missing[*]}"
  if [ "$(id -u)" -eq 0 ]; then
    say "installing them with apt-get (this needs the network, and happens once)"
    install_packages "" "${missing[@]}"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    say "installing them with sudo apt-get (this needs the network, and happens once)"
    install_packages "sudo -n" "${missing[@]}"
  else
    local line=() entry
    for entry in "${missing[@]}"; do line+=("$(choose_alternative "$entry")"); done
    say "error: not root, and no sudo without a password. Run this once as root, then try again:"
    say "  $(was_interrupted && printf '%s && ' "$mending_line")apt-get update && apt-get install -y --no-install-recommends ${line[*]}"
    return 1
  fi
  if ! find_compiler >/dev/null; then
    install_packages "$([ "$(id -u)" -eq 0 ] || echo 'sudo -n')" "g++-$gxx_version_min|g++-13|g++-14"
  fi
}

main "$@"
