#!/usr/bin/env bash
# Runs every built test repeatedly in random order, some rounds next to two busy loops. Usage: tests/repeat.sh [ROUNDS] [LOADED]
#   tests/repeat.sh          ten rounds, every third of them next to the loops
#   tests/repeat.sh 10 0     ten rounds, none of them next to the loops
#   tests/repeat.sh 6 2      six rounds, every second next to the loops
# The output of round N is in build/repeat-N.log. Exit code 1: a test failed in some round.
set -uo pipefail
case ${1:-} in
-h | --help)
  sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
  ;;
esac
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
rounds=${1:-10} every=${2:-3}
for given in "$rounds" "$every"; do
  [[ $given =~ ^[0-9]{1,4}$ ]] || {
    echo "repeat.sh: '$given' is not a whole number from 0 to 9999" >&2
    exit 2
  }
done
[ -e build/release/troupe ] || {
  echo "repeat.sh: build/release/troupe is missing; run tests/run.sh first, which builds it" >&2
  exit 2
}
export OMP_WAIT_POLICY=PASSIVE
loops=()
end_loops() {
  [ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null
  loops=()
}
trap end_loops EXIT
bad=0
for ((round = 1; round <= rounds; ++round)); do
  beside=
  if ((every > 0 && round % every == 0)); then
    for _ in 1 2; do
      while :; do :; done &
      loops+=($!)
    done
    beside=', beside two busy loops'
  fi
  ctest --test-dir build/release --output-on-failure --schedule-random -j 4 >build/repeat-"$round".log 2>&1 || bad=$((bad + 1))
  end_loops
  echo "round $round of $rounds$beside: $(grep 'tests passed' build/repeat-"$round".log), $(sed -n 's/^Total Test time (real) = *//p' build/repeat-"$round".log)"
  sed -nE 's/^\t *[0-9]+ - (.*) \((Failed|Timeout|SEGFAULT|Not Run|Subprocess aborted)\)/  \2: \1/p' build/repeat-"$round".log
done
[ "$bad" = 0 ]
