#!/usr/bin/env bash
# Sweeps the number of disks (fig09_number_of_disks; differential logging, figures 6, 8 and 9) and of logs (Taurus,
# figure 16), and threads on hard disks and on a RAM disk (Taurus, figures 9 to 11). Flags are those of `scripts/exp run`.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" taurus/fig09 taurus/fig10 taurus/fig11 taurus/fig16 \
  differential/fig06 differential/fig08 differential/fig09_log "$@"
