# Options are read before anything is installed or built; sourced by run.sh, test.sh, scripts/torture and scripts/exp.
#
#   check_options PROGRAM.py "$@"    returns if the options are right. Prints help and exits with 0, or what is wrong and
#                                    exits with 2.
#
# PROGRAM.py reads them itself (--parse_only) where there is a python3 to do so. On a bare Debian there is none yet: then
# names are checked against those in its source, and the help is made from there. sh, sed, awk and grep are enough.

wants_help() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) return 0 ;; esac
  done
  return 1
}

# One that can read options; it may lack the modules that the work itself needs.
options_python() {
  command -v python3 >/dev/null 2>&1 &&
    python3 -c 'import argparse, ctypes, json, sys; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1
}

# The options of $1 with their help, a line each.
list_options() {
  awk '
    function show(text,   name, words) {
      if (text ~ /SUPPRESS/ || !match(text, /"--[a-z_]+"/)) return
      name = substr(text, RSTART + 1, RLENGTH - 2)
      words = text
      if (!sub(/.*help=f?/, "", words)) words = "\"\""
      gsub(/"[ \n]+f?"/, "", words)
      match(words, /"[^"]*"/)
      words = substr(words, RSTART + 1, RLENGTH - 2)
      sub(/ *\(default: %\(default\)s\)/, "", words)
      printf "  %-18s %s\n", name, words
    }
    /add_argument\(/ { text = ""; collecting = 1 }
    collecting {
      text = text " " $0
      left = text; right = text
      if (gsub(/\(/, "", left) <= gsub(/\)/, "", right)) { collecting = 0; show(text) }
    }' "$1"
}

check_options() {
  local program=$1 argument name
  shift
  if options_python; then
    python3 "$program" --parse_only "$@" || exit
    if wants_help "$@"; then exit 0; fi
    return 0
  fi
  if wants_help "$@"; then
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    echo
    list_options "$program"
    exit 0
  fi
  for argument in "$@"; do
    case $argument in -?*) ;; *) continue ;; esac
    name=${argument%%=*}
    if ! grep -q "add_argument(\"$name\"" "$program"; then
      printf '%s: error: unrecognized arguments: %s (see --help)\n' "${DBX_PROGRAM:-${0##*/}}" "$argument" >&2
      exit 2
    fi
  done
}
