#!/usr/bin/env bash
# Fails when a folder includes one above it, or a third-party library that another folder owns. Prints the offending lines.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bad=0
complain() {
  if [ -n "$2" ]; then
    printf '%s\n%s\n' "$1" "$2"
    bad=1
  fi
}
includes() { grep -rnE --include='*.hpp' --include='*.cpp' --include='*.cu' "$1" "${@:2}" 2>/dev/null; }
above() {
  case $1 in
  env) echo 'replay|collectives|learner|actors|experiments|tests' ;;
  replay) echo 'collectives|learner|actors|experiments|tests' ;;
  collectives) echo 'env|replay|learner|actors|experiments|tests' ;;
  learner) echo 'actors|experiments|tests' ;;
  actors) echo 'experiments|tests' ;;
  experiments) echo 'tests' ;;
  esac
}
for folder in env replay collectives learner actors experiments; do
  complain "$folder/ includes a folder above it:" "$(includes "#include \"($(above $folder))/" $folder)"
done
all='env replay collectives learner actors experiments'
but() { for f in $all; do [[ " $1 " == *" $f "* ]] || echo "$f"; done; }
complain 'CAF belongs to actors/:' "$(includes '#include [<"]caf/' $(but 'actors experiments'))"
complain 'LibTorch belongs to collectives/ and learner/:' "$(includes '#include [<"](torch|ATen|c10)/' $(but 'collectives learner actors experiments'))"
complain 'MuJoCo belongs to env/:' "$(includes '#include [<"]mujoco/' $(but env))"
complain 'NCCL belongs to collectives/:' "$(includes '#include [<"]nccl' $(but collectives))"
complain 'ZeroMQ belongs to env/wire/:' "$(includes '#include [<"]zmq' replay collectives learner actors experiments | grep -v '^replay/remote')"
complain 'HDF5, NetCDF, libarchive and libjpeg-turbo belong to learner/data/:' \
  "$(includes '#include <(hdf5|netcdf|archive|archive_entry|turbojpeg)\.h>' $all | grep -v '^learner/data/')"
exit $bad
