#!/usr/bin/env bash
# Installs Snakemake, pinned, into a virtual environment of its own: $1, or build/workflow. Nothing else needs it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${1:-$here/../../build/workflow}
python3 -m venv "$target"
"$target/bin/pip" install --quiet --requirement "$here/requirements.txt"
echo "$target/bin/snakemake -s $here/Snakefile --profile $here/profiles/local"
