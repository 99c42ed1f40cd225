#!/usr/bin/env bash
# DBx1000's test procedure in a scratch copy: for each concurrency control and workload, copy config-std.h over
# config.h, set WORKLOAD, CORE_CNT and CC_ALG by regular expression, `make clean; make -j8`, run ./rundb, wait at most
# 10 seconds and look for PASS in what it printed.
#
#   tests/dbx1000_procedure.sh [--clean_once] [CC_ALG[,CC_ALG...] [WORKLOAD[,WORKLOAD...]]]
#
# --clean_once leaves out every `make clean` but the first, so that each further combination compiles only what depends
# on config.h: minutes for all of them. That ./rundb is the combination asked for is checked either way.
# JOBS sets the -j (8, as in the procedure), CXX the compiler.
set -euo pipefail
clean_once=0
if [ "${1:-}" = --clean_once ]; then
  clean_once=1
  shift
fi
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
built=$(sed -n 's/^ *{CcAlg::k[A-Za-z0-9]*, "\([A-Z0-9_]*\)".*/\1/p' "$repository/concurrency_control/controls.h" |
  paste -sd,)
IFS=, read -r -a algorithms <<<"${1:-$built}"
IFS=, read -r -a workloads <<<"${2:-YCSB,TPCC}"
jobs=${JOBS:-8}
timeout_seconds=10

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dbx1000_procedure.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# What git knows or would add: no objects, logs or results.
(cd "$repository" && git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --null -T - -cf -) | tar -xf - -C "$scratch"
cd "$scratch"

set_switch() {
  python3 - "$1" "$2" <<'PYTHON'
import re, sys
name, value = sys.argv[1:]
with open("config.h") as f:
    text = f.read()
text = re.sub(r"\#define\s*" + re.escape(name) + r".*", "#define " + name + " " + value, text)
with open("config.h", "w") as f:
    f.write(text)
PYTHON
}

# Whether ./rundb was made from config.h as it is now.
is_asked_for() {
  ./rundb -S >switches.out 2>&1 &&
    grep -qx "CC_ALG=$1" switches.out && grep -qx "WORKLOAD=$2" switches.out
}

fail() {
  echo "FAIL $1"
  failed=$((failed + 1))
}

passed=0 failed=0
for algorithm in "${algorithms[@]}"; do
  for workload in "${workloads[@]}"; do
    cp config-std.h config.h
    set_switch WORKLOAD "$workload"
    set_switch CORE_CNT 4
    set_switch CC_ALG "$algorithm"
    [ "$clean_once" = 1 ] && [ -e rundb ] || make clean >temp.out 2>&1
    make_begin=$SECONDS
    if ! make -j"$jobs" >temp.out 2>&1; then
      grep -m5 -i error temp.out >&2 || tail -5 temp.out >&2
      fail "$algorithm $workload: does not compile"
      continue
    fi
    make_seconds=$((SECONDS - make_begin))
    if ! is_asked_for "$algorithm" "$workload"; then
      fail "$algorithm $workload: make left a ./rundb of another configuration"
      continue
    fi
    begin=$(date +%s.%N)
    status=0
    timeout -s KILL "$timeout_seconds" ./rundb >run.out 2>&1 || status=$?
    seconds=$(echo "$(date +%s.%N) $begin" | awk '{printf "%.1f", $1 - $2}')
    if [ "$status" = 0 ] && grep -q PASS run.out; then
      echo "PASS $algorithm $workload (${seconds} s, made in ${make_seconds} s)"
      passed=$((passed + 1))
    else
      tail -5 run.out >&2
      fail "$algorithm $workload: exit status $status after ${seconds} s"
    fi
  done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
