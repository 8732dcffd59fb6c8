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

# A module is loaded from the installed package, then from beside the program, and where it is nowhere that is said.
unset WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
if [ ! -e "$folder/troupe/lib/libtroupe_mpi.so" ] || ! command -v mpirun > /dev/null; then
  echo "MPI: not tried, there is no mpirun, or no MPI in this build"
  exit 0
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none MPIEXEC_TIMEOUT=60
over_mpi() { # PROGRAM FOLDER: runs it, and demands that the module came from there
  LD_DEBUG=files mpirun -n 2 "$1" "multi_worker backend=mpi" > "$folder/log" 2>&1 || { grep -v "^ *[0-9]*:" "$folder/log"; return 1; }
  grep -q "calling init: $2/libtroupe_mpi.so" "$folder/log" || { echo "the module was not loaded from $2" >&2; return 1; }
}
over_mpi ./data_parallel "$folder/troupe/lib"
mkdir -p "$folder/elsewhere/bin" "$folder/elsewhere/lib"
cp data_parallel "$folder/elsewhere/bin"
mv "$folder/troupe/lib/libtroupe_mpi.so" "$folder/elsewhere/lib"
over_mpi "$folder/elsewhere/bin/data_parallel" "$folder/elsewhere/lib"
if mpirun -n 2 ./data_parallel "multi_worker backend=mpi" > "$folder/log" 2>&1; then
  echo "a module that is nowhere was found" >&2
  exit 1
fi
grep -q "libtroupe_mpi.so was not found in $folder/build, .*$folder/troupe/lib" "$folder/log" || { cat "$folder/log"; exit 1; }
