#!/usr/bin/env bash
# The papers' figures, built, run and reported:
#
#   scripts/reproduce.sh all                       every figure of the papers, in about an hour (--scale smoke)
#   scripts/reproduce.sh ablation                  our figures: what each switch of the log schemes changes
#   scripts/reproduce.sh taurus/fig09 --scale laptop
#
# FIGURE is part of a name that `scripts/exp list` prints; further flags are those of `scripts/exp run`.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -eq 0 ] || [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit $(($# == 0 ? 2 : 0))
fi
# A wrong argument is told before minutes of installing and building; where python is installed first, after that.
if "$scripts/setup.sh" --python >/dev/null 2>&1; then "$scripts/exp" plan "$@" >/dev/null; fi
"$scripts/setup.sh"
"$scripts/exp" plan "$@" >/dev/null
CXX=$("$scripts/setup.sh" --compiler)
jobs=$("$scripts/setup.sh" --jobs)
(cd "$scripts/.." && scripts/build.py -j"$jobs" CXX="$CXX" rundb-all rundb-timed rundb-charged micro)
exec "$scripts/exp" run "$@"
