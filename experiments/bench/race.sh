#!/usr/bin/env bash
# Benchmarks every stage against every rival, first on an idle machine and then beside a busy loop; prints tables of ratios with the processor and the date.
# Usage: experiments/bench/race.sh PROGRAM PEERS [STAGE…]      e.g. race.sh build/release/troupe ../shared/peers pool learner
#   PROGRAM: the built troupe; PEERS: the folder with the rivals' run.sh, which installs them in $PEERS_VENV on first use
#   STAGE: one of those of peers/rivals.py, or on_policy (PPO against Stable-Baselines3), predictive (MR.Q against PyTorch) or pictures (all tasks
#     against OpenGL); without any: all of them
# LOADS ("0 1"): numbers of busy loops beside the stages, with one pass for each; ROUNDS (3) and SECONDS_EACH (1) of a measurement. Nothing else may run meanwhile.
# Exit code 1: a ratio misses its goal, or a rival gave no figure; 2: usage.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in
'' | -h | --help)
  sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}"
  [ -n "${1:-}" ] && exit 0
  exit 2
  ;;
esac
if [ ! -x "$1" ] || [ ! -f "${2:-}/run.sh" ]; then
  echo "race.sh: '$1' is no program or '${2:-}' has no run.sh; see race.sh --help" >&2
  exit 2
fi
program=$(realpath "$1") peers=$(realpath "$2")
shift 2
known='environment pool games render replay learner classifier collectives ddp agent on_policy predictive pictures'
stages=${*:-$known}
for stage in $stages; do
  [[ " $known " == *" $stage "* ]] || { echo "race.sh: '$stage' is not a stage; use $known" >&2; exit 2; }
done
rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-1}
export PEERS_VENV=${PEERS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/troupe-peers}
python=$PEERS_VENV/torch/bin/python
folder=$(mktemp -d)
loops=()
end_loops() { [ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null; loops=(); }
trap 'end_loops; rm -rf "$folder"' EXIT

race() { # race STAGE LOAD: exit status 1 if a goal is missed
  case $1 in
  on_policy)
    "$here/peers/agents_rival.py" measure "$program" ppo_cartpole ppo_half_cheetah --out "$folder/ppo$2.jsonl" --seeds 1 --libraries ours,sb3 --python "$python" >&2 &&
      "$here/peers/agents_rival.py" table "$folder/ppo$2.jsonl" --goal 3
    ;;
  predictive) "$python" "$here/peers/mrq_rival.py" "$program" --turns "$rounds" --seconds "$seconds" ;;
  pictures)
    "$program" bench render --task all --repetitions 1 --seconds 0.2 --json >"$folder/pictures$2.jsonl" && "$here/peers/render_table.py" "$folder/pictures$2.jsonl"
    ;;
  *) "$here/peers/rivals.py" "$program" "$peers" "$1" --rounds "$rounds" --seconds "$seconds" ;;
  esac
}

missed=()
for load in ${LOADS:-0 1}; do
  for ((i = 0; i < load; ++i)); do
    (while :; do :; done) &
    loops+=($!)
  done
  printf '\n## %s, %s processors, %s busy loops, %s\n' "$(lscpu | sed -n 's/^Model name: *//p')" "$(nproc)" "$load" "$(date -u +%F)"
  for stage in $stages; do
    printf '\n### %s\n' "$stage"
    race "$stage" "$load" || missed+=("$stage beside $load busy loops")
  done
  end_loops
done
printf '\n'
for one in "${missed[@]}"; do echo "missed: $one"; done
[ ${#missed[@]} = 0 ]
