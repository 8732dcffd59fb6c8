#!/usr/bin/env bash
# The real OpenSSH, Slurm and Open MPI on the hosts of hosts.sh.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
PATH=$PATH:/usr/sbin:/sbin
if [ "${1:-}" != inside ]; then exec "$here/hosts.sh" -N 3 --sshd "$0" inside; fi
source "$here/host_tools.sh"
folder=/run/hosts/test
mkdir -p "$folder"
failures=0 passes=0 skips=0
# says SENTENCE EXPECTED COMMAND…: checks that its sorted output is EXPECTED.
says() {
  local code=0
  timeout -k 5 100 "${@:3}" >"$folder/out" 2>"$folder/err" </dev/null || code=$?
  if [ $code = 0 ] && [ "$(sort "$folder/out")" = "$2" ]; then
    passes=$((passes + 1))
    echo "passed: $1"
  else
    failures=$((failures + 1))
    echo "FAILED ($code): $1"
    sed 's/^/    /' "$folder/out" "$folder/err"
  fi
}
three=$'host0\nhost1\nhost2'

says "ssh reaches a host by name" host1 ssh -F "$TROUPE_SSH_CONFIG" host1 hostname
says "ssh reaches it by address, told what it needs one by one" host2 ssh -p "$TROUPE_SSH_PORT" -i "$TROUPE_SSH_IDENTITY" \
  -o BatchMode=yes -o UserKnownHostsFile="$TROUPE_SSH_KNOWN_HOSTS" 10.77.0.3 hostname
says "a host that is not known is refused" refused bash -c \
  'ssh -p 2222 -i "$TROUPE_SSH_IDENTITY" -o BatchMode=yes -o UserKnownHostsFile=/dev/null 10.77.0.3 hostname || echo refused'

if command -v mpirun >/dev/null; then
  printf '%s slots=1\n' host0 host1 host2 >"$folder/hostfile"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  says "mpirun starts a program on each host" "$three" mpirun --hostfile "$folder/hostfile" -n 3 --map-by node --bind-to none \
    --mca plm_rsh_agent "ssh -F $TROUPE_SSH_CONFIG" hostname
else
  skips=$((skips + 1))
  echo "skipped: mpirun is not installed; apt-get install --no-install-recommends openmpi-bin"
fi

code=0
"$here/slurm_here.sh" --hosts srun -N 3 hostname >"$folder/slurm" 2>&1 || code=$?
if [ $code = 77 ]; then
  skips=$((skips + 1))
  cat "$folder/slurm"
else
  says "srun starts a program on each host" "$three" cat "$folder/slurm"
fi
left_on_hosts >"$folder/left"
says "nothing is left on the hosts" "" cat "$folder/left"
echo "$passes passed, $failures failed, $skips skipped"
[ "$failures" = 0 ]
