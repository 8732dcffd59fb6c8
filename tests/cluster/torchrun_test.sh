#!/usr/bin/env bash
# Replicas that PyTorch's torchrun starts. Usage: torchrun_test.sh BUILD_FOLDER [TORCHRUN]
# TORCHRUN defaults to $TROUPE_TORCHRUN, then to the one on the PATH. Prints "skipped:" if there is none.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
torchrun=${2:-${TROUPE_TORCHRUN:-$(command -v torchrun || true)}}
if [ -z "$torchrun" ]; then
  echo "skipped: there is no torchrun on the PATH; pip install torch, or name it in TROUPE_TORCHRUN"
  exit 77
fi
"$torchrun" --help >/dev/null || { echo "$torchrun does not run" >&2; exit 1; }
build=$(readlink -f "$1")
source "$here/checks.sh"
cd "$folder"
run() {
  local sentence=$1 processes=$2
  shift 2
  check "$sentence" "$torchrun" --standalone --nnodes 1 --nproc-per-node "$processes" --no-python "$@"
}

for backend in shared_memory tcp hierarchical auto; do
  run "torchrun places three processes: $backend" 3 "$place" "$backend"
done
run "a strategy's replicas are torchrun's processes" 2 "$any_strategy" "multi_worker backend=tcp" 40
verdict "two processes of torchrun train as one" "$(same_loss 2 && echo 0 || echo $?)"
run "so are the workers of a parameter server" 2 "$any_strategy" "parameter_server" 40
run "torchrun starts a program that knows nothing of Troupe" 2 "$build/troupe" transparent -- "$style" sgd 16 20
verdict "that program trains as one process" "$(same_parameters && echo 0 || echo $?)"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
check "torchrun with an address that the user gives" "$torchrun" --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 \
  --master-port "$port" --no-python "$place" tcp

# The launcher's store outlives the failed attempt, including everything that its ranks have written to it.
cat >twice.sh <<SCRIPT
#!/bin/bash
"$place" "\$1" || exit 1
[ "\$TORCHELASTIC_RESTART_COUNT" = 1 ]
SCRIPT
chmod +x twice.sh
for backend in shared_memory tcp; do
  check "ranks that torchrun starts again meet again: $backend" "$torchrun" --standalone --nnodes 1 --nproc-per-node 2 \
    --max-restarts 1 --no-python ./twice.sh "$backend"
done
finish
