#!/usr/bin/env bash
# Sweeps worker and recovery threads (Taurus, figures 5 to 8; ELEDA, figures 8 and 12). Flags are those of `scripts/exp run`.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" taurus/fig05 taurus/fig06 taurus/fig07 taurus/fig08 eleda/fig08 eleda/fig12 "$@"
