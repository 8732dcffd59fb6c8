#!/usr/bin/env bash
# Installs the libraries into an empty folder, builds a user's project on them alone, and runs it: as threads and as two processes.
# Usage: install_test.sh BUILD_FOLDER SOURCE_FOLDER DEPENDENCIES
set -euo pipefail
build=$1 source=$2 dependencies=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/troupe" --component libraries > "$folder/log" || { cat "$folder/log"; exit 1; }
if grep -rlE "$source|$build" "$folder/troupe/lib/cmake"; then
  echo "the installed package names the folders that it was built in" >&2
  exit 1
fi
cmake -S "$source/tests/install" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_PREFIX_PATH=$folder/troupe;$dependencies" > "$folder/log" || { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" > "$folder/log" || { cat "$folder/log"; exit 1; }
export LD_LIBRARY_PATH=$dependencies/torch/lib OMP_NUM_THREADS=1
cd "$folder/build"
timeout 60 ./mean_of_ranks
timeout 60 ./data_parallel
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
RANK=0 LOCAL_RANK=0 timeout 60 ./data_parallel "multi_worker backend=shared_memory" &
RANK=1 LOCAL_RANK=1 timeout 60 ./data_parallel "multi_worker backend=shared_memory"
wait $!
