#!/usr/bin/env bash
# One experiment everywhere: everywhere.textproto in one process, and on four hosts (network namespaces of this machine) by SSH, by Slurm, by
# mpirun and in Ray. One run goes to its end. In another, the head is killed with kill -9 while it learns (except in one process), and the run is stopped once it learns
# under the next head. Then what is left is counted: processes, listening sockets, shared memory and files. All calls with the same folder share one table.
# Usage: everywhere.sh TROUPE FOLDER [--seeds "1 2 3"] [--set KEY=VALUE]… STAGE…      STAGE: process, ssh, slurm, mpi, ray, table
#   e.g. everywhere.sh build/release/troupe everywhere process ssh slurm mpi ray table
# TROUPE_RAY_PYTHON: a Python that has the package ray, for the stage ray.
# Exit code: 0 done; 1 a run failed or something was left; 77 this machine lacks what a stage needs (prints "skipped:").
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 3 ] || { sed -n 2,9p "$0" >&2; exit 2; }
troupe=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
seeds=1 sets=() stages=()
while [ $# -gt 0 ]; do
  case $1 in
  --seeds) seeds=$2 && shift 2 ;;
  --set) sets+=(--set "$2") && shift 2 ;;
  process | ssh | slurm | mpi | ray | table) stages+=("$1") && shift ;;
  *) echo "everywhere.sh: \"$1\" is no stage; process, ssh, slurm, mpi, ray and table are" >&2; exit 2 ;;
  esac
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # for root alone of any meaning
results=$folder/results.csv
[ -e "$results" ] || echo 'stage,seed,return,least,greatest,environment_steps,updates,seconds,exit_code,stop_code,left,head_back,taken_over' >"$results"
experiment=$here/everywhere.textproto

# The stage's processes, sockets, memory and files, one per line.
state() {
  [ -z "${TROUPE_HOSTS:-}" ] || left_on_hosts | sed 's/process [0-9]*: /process /'
  pgrep -af "$folder/$stage/" | sed 's/^[0-9]* /process /' | grep -v everywhere.sh
  [ -z "${TROUPE_HOSTS:-}" ] || ss -Htuln | awk '{ print "socket " $1 " " $5 }'
  [ -z "${TROUPE_HOSTS:-}" ] || find /dev/shm -mindepth 1 -printf 'shared memory %f\n'
  find "$folder/$stage/hosts" -mindepth 1 -printf 'file %p\n' 2>/dev/null
}
left() { state | sort >"$folder/$stage/after"; comm -13 "$folder/$stage/before" "$folder/$stage/after"; }
nothing_left() { [ -z "$(left)" ]; }

# within SECONDS COMMAND…: repeats the command until it succeeds or the time is over.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    read -r -t 0.2 <> <(:) || true
  done
}
newest_run() { ls -d "$runs"/everywhere/* 2>/dev/null | tail -n 1; }
# column NAME KIND: the column's value in the last row of that kind.
column() {
  tr -d "\r" 2>/dev/null <"$(newest_run)/metrics.csv" | awk -F, -v name="$1" -v kind="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i } $1 == kind { found = $at } END { print found }'
}
learns() { [ "$(column updates progress)" -gt 300 ] 2>/dev/null || ! kill -0 "$run" 2>/dev/null; }

# Milliseconds of a monotonic clock.
now() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
# kill_head: sets head_back, the seconds until updates continue, and taken_over, the surviving processes ("M of N").
kill_head() {
  local updates begin
  recorded() { [ -s "$(newest_run)/checkpoints/head.state" ]; }
  within 60 recorded || return 1 # else the next head begins another run
  updates=$(column updates progress)
  kill -9 "$(grep -o '"process":[0-9 ]*' "$(newest_run)/head.json" | tr -dc 0-9)" || return 1
  begin=$(now)
  moves() { [ "$(column updates progress)" -gt $((updates + 100)) ] 2>/dev/null; }
  within 120 moves || return 1
  head_back=$(awk -v ms=$(($(now) - begin)) 'BEGIN { printf "%.1f", ms / 1000 }')
  taken_over=$(sed -n 's/.*took over \([0-9]* processes of [0-9]*\).*/\1/p' "$(newest_run)/log.txt" | tail -n 1)
}

cluster_file() {
  "$troupe" keys cluster "$folder/$stage/keys" >/dev/null || return 1
  cat >"$folder/$stage/cluster.textproto" <<T
name: "everywhere"
node { name: "host" count: 4 $([ "$stage" = slurm ] || [ "$stage" = ray ] || echo 'address: "10.77.0.[1-4]"') cores: 2 }
$1
keys: "$folder/$stage/keys"
oversubscribe: true
pin: false
role { name: "environment" apart: "environment" }
role { name: "replay" apart: "replay" }
role { name: "learner" apart: "learner" }
T
}

# start SEED [--set KEY=VALUE]: starts the run in the background; $! is its head or the process that carries it.
start() {
  local cluster=$folder/$stage/cluster.textproto words=("${sets[@]}" --set "seed=$1" --runs "$runs" "${@:2}")
  [ "$stage" = process ] || words+=(--set learner.backend=TCP) # between hosts
  case $stage in
  process) "$troupe" train "$experiment" --quiet "${words[@]}" & ;;
  slurm) # as a user does: the batch script has the head on its first host
    rm -rf "$folder/$stage/job"
    "$troupe" launch "$cluster" "$experiment" --manifests "$folder/$stage/job" "${words[@]}" || return 1
    (cd "$folder/$stage/job" && exec sbatch --wait "$folder/$stage/job/job.sh") & ;;
  *) "$troupe" launch "$cluster" "$experiment" "${words[@]}" & ;;
  esac
  run=$!
}
# Sends the head its first signal.
stop() {
  local head=$run
  [ "$stage" != slurm ] || head=$(pgrep -f "^$troupe launch .*$folder/slurm/" | head -n 1)
  kill -TERM "$head" 2>/dev/null # else it ended before, and its exit code says so
}

# bad: prints those rows of results that say that a run failed or left something; fails if there are none.
bad() { awk -F, '$9 != "0" || $10 != "0" || $11 != "0" || $3 == "" || ($1 != "process" && $12 == "")' | grep .; }

one() { # one SEED
  local code stop_code left row head_back= taken_over=
  runs=$folder/$stage/runs-$1
  start "$1" >"$folder/$stage/out-$1" 2>&1
  wait "$run"
  code=$?
  local values=() name
  for name in evaluation_return evaluation_return_min evaluation_return_max environment_steps updates training_seconds; do
    values+=("$(column "$name" final)")
  done
  runs=$folder/$stage/stopped-$1
  start "$1" --set checkpoint.minutes=0.1 >"$folder/$stage/stopped-out-$1" 2>&1
  within 240 learns
  [ "$stage" = process ] || kill_head || echo "everywhere.sh: the run did not go on after its head's death" >&2
  stop
  wait "$run"
  stop_code=$?
  ls "$(newest_run)"/checkpoints/*/manifest.json >/dev/null 2>&1 || stop_code="$stop_code without a checkpoint"
  within 30 nothing_left
  left=$(left)
  [ -z "$left" ] || echo "$left"
  [ "$code$stop_code" = 00 ] || tail -n 15 "$folder/$stage"/{,stopped-}out-"$1"
  row=$(IFS=,; echo "$stage,$1,${values[*]},$code,$stop_code,$([ -z "$left" ] && echo 0 || wc -l <<<"$left"),$head_back,$taken_over")
  echo "$row" | tee -a "$results"
  if bad <<<"$row" >/dev/null; then failed=1; fi
}

run_stage() {
  . "$here/host_tools.sh"
  case $stage in
  ssh) cluster_file "ssh { port: $TROUPE_SSH_PORT identity_file: \"$TROUPE_SSH_IDENTITY\" known_hosts: \"$TROUPE_SSH_KNOWN_HOSTS\" program: \"$troupe\" folder: \"$folder/ssh/hosts\" }
head { listen: \"10.77.0.254:4242\" }" ;;
  mpi) cluster_file "mpi { program: \"$troupe\" option: [\"--mca\", \"plm_rsh_agent\", \"ssh -F $TROUPE_SSH_CONFIG\"] }
head { listen: \"10.77.0.254:4242\" }" ;;
  ray) cluster_file "ray { address: \"$RAY_ADDRESS\" python: \"$TROUPE_RAY_PYTHON\" program: \"$troupe\" strategy: \"STRICT_SPREAD\" }
head { listen: \"10.77.0.254:4242\" }" ;;
  slurm) cluster_file "slurm { program: \"$troupe\" minutes: 60 }" ;;
  esac || exit 1
  state | sort >"$folder/$stage/before"
  for seed in $seeds; do one "$seed"; done
}

table() {
  echo '| placement | seed | return (least to greatest) | environment steps | updates | training, s | exit codes | left | head back after, s | taken over |'
  echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
  awk -F, 'NR > 1 { printf "| %s | %s | %.1f (%.1f to %.1f) | %d | %d | %.0f | %s, %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
    n[$1]++; sum[$1] += $3; square[$1] += $3 * $3 }
    END { for (s in n) { m = sum[s] / n[s]; v = square[s] / n[s] - m * m; printf "%s: mean %.1f, standard deviation over %d seeds %.1f\n", s, m, n[s], sqrt(v > 0 ? v : 0) } }' "$results"
  ! tail -n +2 "$results" | bad
}

code=0 failed=0
for stage in "${stages[@]}"; do
  if [ "$stage" = table ]; then
    table || code=1
    continue
  fi
  if [ -n "${TROUPE_STAGE:-}" ]; then
    run_stage
    continue
  fi
  rm -rf "${folder:?}/$stage"
  mkdir -p "$folder/$stage/hosts"
  rest=("$troupe" "$folder" --seeds "$seeds")
  for ((i = 1; i < ${#sets[@]}; i += 2)); do rest+=(--set "${sets[i]}"); done
  case $stage in
  process) : >"$folder/process/before"; for seed in $seeds; do one "$seed"; done ;;
  ssh | mpi) TROUPE_STAGE=1 "$here/hosts.sh" -N 4 --sshd bash "$0" "${rest[@]}" "$stage" || code=$? ;;
  ray) TROUPE_STAGE=1 "$here/hosts.sh" -N 4 "$here/ray_here.sh" "${TROUPE_RAY_PYTHON:-python3}" --hosts bash "$0" "${rest[@]}" ray || code=$? ;;
  slurm) TROUPE_STAGE=1 "$here/hosts.sh" -N 4 --sshd "$here/slurm_here.sh" --hosts bash "$0" "${rest[@]}" slurm || code=$? ;;
  esac
done
[ "$code" != 0 ] || code=$failed
exit "$code"
