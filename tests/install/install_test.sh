#!/usr/bin/env bash
# Installs Troupe into an empty folder, moves it, and uses it from projects outside the source tree: its components, headers and pkg-config files, each
# example of experiments/examples/ as a separate project, and modules that are loaded on demand.
# Usage: install_test.sh BUILD_FOLDER SOURCE_FOLDER DEPENDENCIES
#   DEPENDENCIES: the folder with LibTorch and MuJoCo, which may be inside the source folder
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$1 source=$2 dependencies=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
troupe=$folder/troupe
export OMP_NUM_THREADS=1 CCACHE_BASEDIR=$folder CCACHE_NOHASHDIR=1
launcher=$(command -v ccache || true)
[ -z "$launcher" ] || export CMAKE_CXX_COMPILER_LAUNCHER=$launcher
fail() {
  echo "$1" >&2
  exit 1
}
quiet() {
  local log
  log=$(mktemp -p "$folder")
  "$@" > "$log" 2>&1 || { cat "$log"; return 1; }
}
since=$SECONDS
report() { echo "$1 ($((SECONDS - since)) s)"; since=$SECONDS; }

for component in libraries program; do
  quiet cmake --install "$build" --prefix "$folder/installed" --component $component
done
mv "$folder/installed" "$troupe"
cd "$folder"

# No file contains a path of the build or of the installation; dependencies are named where they were found.
named=$(grep -rn "$folder/installed\|$build\|$source" "$troupe"/{include,lib/cmake,lib/pkgconfig,share} | sed "s#$dependencies##g" \
  | grep "$folder/installed\|$build\|$source" | head -n 5 || true)
[ -z "$named" ] || fail "the installed package names folders of the build: $named"
for program in "$troupe"/bin/troupe "$troupe"/lib/*.so; do
  if readelf -d "$program" | grep -E 'RPATH|RUNPATH' | sed "s#$dependencies##g" | grep "$build\|$source"; then
    fail "the run path of $program names folders of the build"
  fi
done
"$troupe/bin/troupe" --version > /dev/null
"$troupe/bin/troupe" list experiments | grep quickstart > /dev/null || fail 'the installed program finds no experiments'
report 'installed and moved'

# A component looks for the packages that it needs, and for no others.
cp -r "$here" tests
configure() { # COMPONENT WITHOUT…
  local words=(-DCOMPONENT="$1") package
  for package in "${@:2}"; do words+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
  rm -f components/CMakeCache.txt
  cmake -S tests/components -B components -G Ninja "-DCMAKE_PREFIX_PATH=$troupe" "${words[@]}" > log 2>&1
}
refused() { # MESSAGE COMPONENT WITHOUT…
  if configure "${@:2}"; then fail "component $2 was found"; fi
  tr -s ' \n' ' ' < log | grep -F "$1" > /dev/null || { cat log; fail "no message '$1'"; }
}
refused "there is no component 'replai'; there are caster, env, replay" replai
refused "its component 'caster' needs MuJoCo 3.17.0 EXACT, which was not found" env MuJoCo
refused "its component 'collectives' needs LibTorch" agents LibTorch
refused "compatible with requested version \"0.2\"" env:0.2
configure caster LibTorch CAF Protobuf || { cat log; exit 1; }
configure env LibTorch CAF || { cat log; exit 1; }
configure replay LibTorch MuJoCo CAF || { cat log; exit 1; }
configure learner MuJoCo CAF || { cat log; exit 1; }
configure 'agents;data;workloads' CAF CLI11 || { cat log; exit 1; }
report 'components'

# Builds the examples, two at a time. Each sees only the installed package; the tests that it declares run it.
example() { # NAME
  local name=$1 log=$folder/$1.log code=0
  cp -r "$source/experiments/examples/$name" "$folder/examples/$name"
  {
    cmake -S "$folder/examples/$name" -B "$folder/build/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 "-DCMAKE_PREFIX_PATH=$troupe" \
      && cmake --build "$folder/build/$name" \
      && ctest --test-dir "$folder/build/$name" --output-on-failure --timeout 120
  } > "$log" 2>&1 || code=$?
  if [ $code = 0 ] && ninja -C "$folder/build/$name" -t deps | sed "s#$dependencies##g" | grep "$build\|$source" >> "$log"; then
    echo "example $name was compiled with files of the source or the build" >> "$log"
    code=1
  fi
  if [ $code != 0 ]; then
    echo "example $name:" >&2
    tail -n 60 "$log" >&2
  fi
  return $code
}
export -f example
export folder source build dependencies troupe
mkdir examples build
find "$source/experiments/examples" -mindepth 2 -maxdepth 2 -name CMakeLists.txt -printf '%h\n' | xargs -n1 basename | sort > names
[ "$(wc -l < names)" -ge 6 ] || fail 'examples are missing'
xargs -n1 -P2 bash -c 'example "$1"' example < names
report "examples: $(tr '\n' ' ' < names)"

# With pkg-config and a compiler, without CMake.
export PKG_CONFIG_PATH=$troupe/lib/pkgconfig:${PKG_CONFIG_PATH:-}
compiled() { # COMPONENT PROGRAM SOURCE…: by way of object files, which the compiler's cache knows
  local name=$1 program=$2 source objects=()
  shift 2
  for source in "$@"; do
    objects+=("$program.${source##*/}.o")
    # shellcheck disable=SC2046
    $launcher c++ -O1 -c "$source" -o "${objects[-1]}" $(pkg-config --cflags "troupe-$name")
  done
  # shellcheck disable=SC2046
  c++ "${objects[@]}" -o "$program" $(pkg-config --libs "troupe-$name")
}
build_and_run() { # COMPONENT SOURCE ARGUMENT…
  compiled "$1" "with_$1" "$2"
  quiet timeout 60 "./with_$1" "${@:3}"
}
cp "$source/replay/examples/client.cpp" tests
build_and_run replay tests/client.cpp &
others=$!
build_and_run env examples/environment_pool/environment_pool.cpp CartPole-v1 4 2 100
wait $others
build_and_run collectives tests/mean_of_ranks.cpp
compiled experiments own_program examples/own_environment/own_{environment,program}.cpp
quiet timeout 60 ./own_program check environment push_to_middle
if ldd with_replay | grep -E 'lib(mujoco|torch|caf)'; then # by name: an address may contain "caf"
  fail 'a replay client is linked with more than it needs'
fi
report 'pkg-config'

# All headers include only installed files, and each component's headers compile with the component's dependencies.
quiet "$here/check_headers.py" "$troupe/include/troupe"
headers() { # COMPONENT FOLDER…
  local name=$1
  (cd "$troupe/include/troupe" && find "${@:2}" -name '*.hpp' | sort | sed 's/.*/#include "&"/') > "headers_$name.cpp"
  # shellcheck disable=SC2046
  $launcher c++ -O0 -c $(pkg-config --cflags "troupe-$name") "headers_$name.cpp" -o "headers_$name.o" > "headers_$name.log" 2>&1 || {
    cat "headers_$name.log" >&2
    fail "the headers of component $name do not compile"
  }
}
(
  headers env env
  headers replay replay env/wire
  headers data collectives learner
) &
others=$!
headers experiments actors experiments
wait $others
report 'headers'

# Two replicas in two processes.
parallel=$folder/build/data_parallel/data_parallel
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
RANK=0 LOCAL_RANK=0 timeout 60 "$parallel" "multi_worker backend=shared_memory" &
RANK=1 LOCAL_RANK=1 timeout 60 "$parallel" "multi_worker backend=shared_memory"
wait $!

# A module is loaded from the installed package, otherwise from beside the program; if it is in neither place, the error says so.
unset WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
if [ ! -e "$troupe/lib/libtroupe_mpi.so" ] || ! command -v mpirun > /dev/null; then
  echo "MPI: not tried, there is no mpirun, or no MPI in this build"
  exit 0
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none MPIEXEC_TIMEOUT=60
over_mpi() { # PROGRAM FOLDER: runs it, and demands that the module came from there
  LD_DEBUG=files mpirun -n 2 "$1" "multi_worker backend=mpi" > log 2>&1 || { grep -v "^ *[0-9]*:" log; return 1; }
  grep -q "calling init: $2/libtroupe_mpi.so" log || fail "the module was not loaded from $2"
}
over_mpi "$parallel" "$troupe/lib"
mkdir -p elsewhere/bin elsewhere/lib
cp "$parallel" elsewhere/bin
mv "$troupe/lib/libtroupe_mpi.so" elsewhere/lib
over_mpi "$folder/elsewhere/bin/data_parallel" "$folder/elsewhere/lib"
if mpirun -n 2 "$parallel" "multi_worker backend=mpi" > log 2>&1; then
  fail "a module that is nowhere was found"
fi
grep -q "libtroupe_mpi.so was not found in $folder/build/data_parallel, .*$troupe/lib" log || { cat log; exit 1; }
report 'MPI'
