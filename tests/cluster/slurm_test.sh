#!/usr/bin/env bash
# Replicas that Slurm starts: srun and sbatch, on one node and on two. Usage: slurm_test.sh BUILD_FOLDER
# Starts a private Slurm (slurm_here.sh). Prints "skipped:" if that is not possible.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ "${2:-}" != inside ]; then
  exec "$here/slurm_here.sh" -N 2 "$0" "$1" inside
fi
build=$(readlink -f "$1")
source "$here/checks.sh"
cd "$folder"

for backend in shared_memory tcp hierarchical auto; do
  check "srun places three processes of one node: $backend" srun -N 1 -n 3 "$place" "$backend"
done
check "a strategy's replicas are srun's tasks" srun -N 1 -n 2 "$any_strategy" multi_worker 40
verdict "two tasks of srun train as one process" "$(same_loss 2 && echo 0 || echo $?)"

cat >job.sh <<JOB
#!/bin/bash
srun -n 2 "$any_strategy" "multi_worker backend=tcp" 40
JOB
check "a batch script's srun starts replicas" sbatch --wait -N 1 -n 2 -o batch.log job.sh
cp batch.log out
verdict "two tasks of a batch script train as one process" "$(same_loss 2 && echo 0 || echo $?)"

check "srun starts a program that knows nothing of Troupe" srun -N 1 -n 2 "$build/troupe" transparent -- "$style" sgd 16 20
verdict "that program trains as one process" "$(same_parameters && echo 0 || echo $?)"
printf '#!/bin/bash\n"%s" transparent -n 2 --output all -- "%s" sgd 16 20\n' "$build/troupe" "$style" >job.sh
check "a batch script starts it with -n" sbatch --wait -N 1 -n 2 -o batch.log job.sh
cp batch.log out
verdict "the batch script's program trains as one process" "$(same_parameters && echo 0 || echo $?)"

# Both nodes are this host, but their Slurm names do not resolve: the script sets the ranks' addresses.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port TROUPE_ADDRESS=127.0.0.1
for backend in tcp hierarchical auto; do
  check "srun places four processes of two nodes: $backend" srun -N 2 -n 4 "$place" "$backend"
done
check "srun starts that program on two nodes" srun -N 2 -n 2 "$build/troupe" transparent -- "$style" sgd 16 20
verdict "on two nodes it trains as one process" "$(same_parameters && echo 0 || echo $?)"
unset MASTER_ADDR MASTER_PORT TROUPE_ADDRESS

code=0
timeout 60 srun -N 1 -n 2 "$build/troupe" transparent -- "$style" sgd 16 20 exit >"$folder/out" 2>&1 </dev/null || code=$?
verdict "a task that ends with an error ends the step, with its name" \
  "$([ $code != 0 ] && [ $code != 124 ] && grep -q "ended with exit code 3" "$folder/out" && echo 0 || echo "$code")"
finish
