#!/usr/bin/env bash
# Sweeps theta and the length of transactions (Taurus, figures 13 and 14). Flags are those of `scripts/exp run`.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/reproduce.sh" taurus/fig13 taurus/fig14 "$@"
