# What the tests of launchers share. Source it after `set -euo pipefail`, with build=<build folder> set.
export OMP_NUM_THREADS=1
any_strategy=$build/experiments/any_strategy
place=$build/tests/collectives/topology_process
style=$build/tests/learner/transparent/small_style
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
passes=0

# check SENTENCE COMMAND…: runs the command for at most a minute. Its output is in $folder/out.
check() {
  local sentence=$1 code=0
  shift
  timeout -k 5 60 "$@" >"$folder/out" 2>&1 </dev/null || code=$?
  verdict "$sentence" "$code"
}

verdict() {
  if [ "$2" = 0 ]; then
    passes=$((passes + 1))
    echo "passed: $1"
  else
    failures=$((failures + 1))
    echo "FAILED ($2): $1"
    sed 's/^/    /' "$folder/out" | tail -n 25
  fi
}

# The loss that any_strategy printed, exactly once, for this number of replicas.
loss() {
  sed -n "s/.*| replicas $1 | loss \([0-9.e-]*\)$/\1/p" "$folder/out"
}

# same_loss REPLICAS: the steps equal those of one process, except for the order of sums.
same_loss() {
  local found
  found=$(loss "$1")
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 1e-6 * (1 + abs(a)))' "$alone" "$found"
}

# same_parameters: the parameters that small_style printed on two ranks equal those of one process, in any order of lines.
same_parameters() {
  python3 - "$folder/one" "$folder/out" <<'PY'
import sys
def read(path):
    found = {}
    for line in open(path, errors="replace"):
        words = line.split()
        if "parameter" in words:
            at = words.index("parameter")
            found.setdefault(words[at + 1], []).append(float(words[at + 2]))
    return found
one, both = map(read, sys.argv[1:])
assert one and one.keys() == both.keys(), "other parameters were printed"
for name, values in one.items():
    mine, theirs = sorted(values * 2), sorted(both[name])
    assert len(mine) == len(theirs) and all(abs(a - b) < 2e-4 for a, b in zip(mine, theirs)), (name, mine, theirs)
PY
}

finish() {
  echo "$passes passed, $failures failed"
  [ "$failures" = 0 ]
}

"$style" sgd 32 20 >"$folder/one"
"$any_strategy" one_device 40 >"$folder/out"
alone=$(loss 1)
