#!/usr/bin/env bash
# Runs a command inside a private Slurm on this host, and shuts it down afterwards.
# Usage: slurm_here.sh [-N NODES | --hosts] COMMAND [ARGUMENT…]      e.g. slurm_here.sh srun -n 2 hostname
#   -N: number of nodes, each a slurmd on this host with its own port (default 1); each has as many processors as the host, at least 4.
#   --hosts: for use within hosts.sh: a node on each of its hosts, with its name and address; COMMAND runs beside them.
# munged, slurmctld and slurmd run in the foreground as this user, root or not, listen only on free loopback ports, and keep
# everything in a temporary folder. A Slurm configured on the host is neither used nor changed. COMMAND finds this one by SLURM_CONF.
# Exit code: COMMAND's; 77 if Slurm is not installed (prints "skipped:"); 1 if the daemons do not start (their logs are shown) or
# a process is left after the shutdown.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
nodes=1
hosts=0
if [ "${1:-}" = -N ]; then
  nodes=$2
  shift 2
elif [ "${1:-}" = --hosts ]; then
  source "$here/host_tools.sh"
  hosts=1
  nodes=$TROUPE_HOSTS
  shift
fi
[[ "$nodes" =~ ^[1-9][0-9]?$ ]] || { echo "-N is \"$nodes\"; it must be a number of nodes from 1 to 99" >&2; exit 2; }
[ $# -gt 0 ] || { sed -n 2,9p "$0" >&2; exit 2; }
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun scontrol; do
  command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed; apt-get install --no-install-recommends munge slurmctld slurmd slurm-client"
    exit 77
  }
done

folder=$(mktemp -d "${TMPDIR:-/tmp}/slurm_here.XXXXXX")
user=$(id -un)
daemons=()

# Every process that runs from our folder or has it among its arguments: daemons, steps, and what they started.
ours() {
  local pid
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] || continue
    { tr '\0' '\n' <"/proc/$pid/cmdline"; tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -qF "$folder" && echo "$pid"
  done
  return 0
}

down() {
  local code=$? left=() pid
  trap - EXIT INT TERM
  [ -f "$folder/slurm.conf" ] && timeout 10 scancel --user="$user" 2>/dev/null || true
  for _ in $(seq 50); do # the jobs' own processes
    [ -z "$(timeout 5 squeue -h 2>/dev/null || true)" ] && break
    sleep 0.1
  done
  for pid in ${daemons[@]+"${daemons[@]}"}; do kill "$pid" 2>/dev/null || true; done
  for _ in $(seq 100); do
    [ -z "$(ours)" ] && break
    sleep 0.1
  done
  mapfile -t left < <(ours)
  if [ ${#left[@]} -gt 0 ]; then
    echo "slurm_here: ${#left[@]} processes are left: $(ps -o pid=,args= -p "$(IFS=,; echo "${left[*]}")")" >&2
    kill -9 "${left[@]}" 2>/dev/null || true
    [ $code != 0 ] || code=1
  fi
  rm -rf "$folder"
  exit "$code"
}
trap down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed() {
  echo "slurm_here: $1" >&2
  tail -n 20 "$folder"/*.log >&2
  exit 1
}

mapfile -t ports < <(python3 - $((nodes + 1)) <<'PY'
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*[s.getsockname()[1] for s in held], sep="\n")
PY
)
export SLURM_CONF=$folder/slurm.conf
unset SLURM_JOB_ID SLURM_JOBID SLURM_PROCID SLURM_STEP_ID SLURM_NTASKS SLURM_HOSTFILE
mkdir -m 755 "$folder/munge" "$folder/state"
chmod 755 "$folder"
dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 2>/dev/null
chmod 600 "$folder/munge.key"
controller=127.0.0.1
[ $hosts = 0 ] || controller=10.77.0.254
processors=$(($(nproc) > 4 ? $(nproc) : 4))
{
  cat <<CONF
ClusterName=here
SlurmctldHost=$(hostname -s)($controller)
SlurmctldPort=${ports[0]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
MailProg=/bin/true
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=2,batch_sched_delay=1
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=2
CONF
  for ((i = 0; i < nodes; ++i)); do
    if [ $hosts = 1 ]; then
      echo "NodeName=host$i NodeAddr=$(host_address $i) Port=${ports[i + 1]} CPUs=$processors State=UNKNOWN"
    else
      echo "NodeName=here$i NodeAddr=127.0.0.1 NodeHostname=here$i Port=${ports[i + 1]} CPUs=$processors State=UNKNOWN"
    fi
  done
  echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES"
} >"$SLURM_CONF"

munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
  --seed-file="$folder/munge/seed" --log-file="$folder/munged.log" >"$folder/munged.out.log" 2>&1 &
daemons+=($!)
for _ in $(seq 100); do
  [ -S "$folder/munge/socket" ] && break
  kill -0 "${daemons[0]}" 2>/dev/null || failed "munged ended"
  sleep 0.1
done
slurmctld -D -c >"$folder/slurmctld.out.log" 2>&1 &
daemons+=($!)
for ((i = 0; i < nodes; ++i)); do
  name=here$i
  enter=()
  if [ $hosts = 1 ]; then
    name=host$i
    enter_host "$i"
  fi
  mkdir -p "$folder/spool.$name"
  ${enter[@]+"${enter[@]}"} slurmd -D -N "$name" >"$folder/slurmd.$name.out.log" 2>&1 &
  daemons+=($!)
done
for _ in $(seq 300); do
  ready=$(timeout 5 sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$' || true)
  [ "$ready" = "$nodes" ] && break
  for pid in "${daemons[@]}"; do kill -0 "$pid" 2>/dev/null || failed "a daemon ended"; done
  sleep 0.1
done
[ "$ready" = "$nodes" ] || failed "only ${ready:-0} of $nodes nodes came up within 30 s"

code=0
"$@" || code=$?
exit "$code"
