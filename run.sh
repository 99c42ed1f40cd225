#!/usr/bin/env bash
# The main job on a fresh machine: installs what is missing, builds, then runs, crashes, recovers and verifies
# every cell in some minutes. Options go to scripts/main_job.py; ./run.sh --help lists them.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DBX_PROGRAM=run.sh
. "$repository/scripts/options.sh"

check_options "$repository/scripts/main_job.py" "$@"
"$repository/scripts/setup.sh"
python=$("$repository/scripts/setup.sh" --python)
main_job=("$python" "$repository/scripts/main_job.py" "$@")

# Wrong values of options, if there was no python3 to see them; and what needs no build does without.
"${main_job[@]}" --parse_only || exit
for argument in "$@"; do
  case $argument in --list_cells | --report_only) exec "${main_job[@]}" ;; esac
done

jobs=$("$repository/scripts/setup.sh" --jobs)
compiler=$("$repository/scripts/setup.sh" --compiler)
(cd "$repository" && scripts/build.py -j"$jobs" CXX="$compiler" rundb-all log_dump build/micro/host_limits)
exec "${main_job[@]}"
