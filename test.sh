#!/usr/bin/env bash
# All tests; with --quick those that take some 6 minutes once built; with --nightly more of them, for hours. Installs,
# builds, runs phase after phase (scripts/run_tests.py; --help lists its options), and ends with "N passed, M failed".
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DBX_PROGRAM=test.sh
. "$repository/scripts/options.sh"

check_options "$repository/scripts/run_tests.py" "$@"
"$repository/scripts/setup.sh" --tests
python=$("$repository/scripts/setup.sh" --python)
CXX=$("$repository/scripts/setup.sh" --compiler)
DBX_JOBS=$("$repository/scripts/setup.sh" --jobs)
export CXX DBX_JOBS
exec "$python" "$repository/scripts/run_tests.py" "$@"
