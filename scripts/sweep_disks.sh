#!/usr/bin/env bash
# Sweeps the devices and the number of logs (Taurus, figures 9 to 11 and 16). Flags are those of `scripts/exp run`.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" taurus/fig09 taurus/fig10 taurus/fig11 taurus/fig16 "$@"
