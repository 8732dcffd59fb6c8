#!/usr/bin/env bash
# The batch script of `troupe launch --manifests`, in a private Slurm. Usage: slurm_script_test.sh BUILD_FOLDER
# It starts a stand-in for `troupe` that records how it was called: this tests the script, not the training.
# Prints "skipped:" if Slurm cannot be started.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ "${2:-}" != inside ]; then
  exec "$here/slurm_here.sh" -N 2 "$0" "$1" inside
fi
build=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >stand_in <<'SCRIPT'
#!/bin/bash
# launch: runs until `finish` exists, or until SIGTERM. node: until `finish` exists, or the head has ended; the first one fails if `fail` exists.
here=$(dirname "$0")
[ "$1" = node ] || { rm -f "$here/ended"; trap 'echo stopped >>"$here/calls"; touch "$here/ended"; exit 0' TERM; }
[ "$1" = launch ] || ! rm "$here/fail" 2>/dev/null || exit 9
echo "$*${TROUPE_KEYS:+ keys=$TROUPE_KEYS}" >>"$here/calls" # who has noted its call heeds signals
while [ ! -e "$here/finish" ] && { [ "$1" = launch ] || [ ! -e "$here/ended" ]; }; do sleep 0.1; done
[ "$1" = launch ] || exit 0
touch "$here/ended"
exit "$(cat "$here/finish" 2>/dev/null || echo 0)"
SCRIPT
chmod +x stand_in
cat >job.textproto <<CLUSTER
node { name: "n" count: 2 cores: 2 }
slurm { program: "$folder/stand_in" minutes: 5 }
keys: "the keys"
oversubscribe: true
supervision { grace_seconds: 1 }
CLUSTER
"$build/troupe" launch job.textproto quickstart --manifests out >/dev/null

# within SENTENCE COMMAND…: waits at most two minutes until the command succeeds.
within() {
  local sentence=$1
  shift
  for _ in $(seq 1200); do
    if "$@" 2>/dev/null; then
      echo "passed: $sentence"
      return 0
    fi
    sleep 0.1
  done
  echo "FAILED: $sentence"
  sed 's/^/    /' calls job-*.log 2>/dev/null | tail -n 30
  scontrol show job 2>/dev/null | sed 's/^/    /' | head -n 30
  exit 1
}
calls() { [ "$(grep -c "$1" calls)" = "$2" ]; }
# Slurm lets a requeued job wait for two minutes after its last step ended. Three seconds are enough. Fewer are not: if a job's
# credential is from the second in which its previous run was killed, slurmd takes it for the killed one.
resumed() {
  local eligible
  eligible=$(scontrol show job "$job" | sed -n 's/.*EligibleTime=//p')
  if [ $(($(date -d "$eligible" +%s) - $(date +%s))) -gt 10 ]; then scontrol update jobid="$job" starttime=now+3 || true; fi
  calls "^launch .* --resume keys=" 1
}

touch fail
job=$(sbatch --parsable out/job.sh)
within "a node is started on each host, one after it has failed, and the head" calls . 3
port=$((20000 + job % 10000))
within "the head listens at the job's port and starts no nodes itself" calls "^launch $folder/out/cluster.textproto $folder/out/experiment.textproto --launcher none --listen 0.0.0.0:$port --runs $folder/runs keys=$folder/the keys\$" 1
for i in 0 1; do
  within "node $i has its name, the head's address and the keys" calls "^node --head here[01]:$port --name n-$i --join-seconds 120 keys=$folder/the keys\$" 1
done
scancel --batch --signal=TERM "$job" # as Slurm does before the time limit
within "the signal reaches the head" calls "^stopped\$" 1
within "the job is queued again" bash -c "scontrol show job $job | grep -q 'Restarts=1'"
within "it continues from where it was" resumed
echo 0 >finish
within "it ends when the head has ended" bash -c "scontrol show job $job | grep -q JobState=COMPLETED"

echo 3 >finish
code=0
sbatch --wait out/job.sh >/dev/null || code=$?
[ "$code" = 3 ] && echo "passed: the job's exit code is the head's" || { echo "FAILED ($code): the job's exit code is the head's"; exit 1; }
rm -f finish calls
job=$(sbatch --parsable out/job.sh)
within "a third job starts" calls . 3
scancel "$job"
within "a cancelled job is not queued again" bash -c "scontrol show job $job | grep -q 'JobState=CANCELLED'"
within "nothing is left in the queue" bash -c '[ -z "$(squeue -h)" ]'
