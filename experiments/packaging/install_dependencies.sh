#!/usr/bin/env bash
# Installs what Troupe needs to build and train on Debian 12; prints nothing if everything is installed. Usage: install_dependencies.sh [--tests]
#   Debian packages: apt-packages.txt beside this script; --tests adds apt-packages-tests.txt, which the tests and checks need.
#   Wheels: wheels.txt, verified by checksum and unpacked into build/third_party (no Python installation is changed), or into the folder that
#   the variable TROUPE_DEPENDENCIES names with an absolute path; CMake looks there, too.
#   To use another LibTorch, MuJoCo or models folder, name it in CMAKE_PREFIX_PATH.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=${TROUPE_DEPENDENCIES:-$top/build/third_party}

lists=("$top/experiments/packaging/apt-packages.txt")
case ${1:-} in
'') ;;
--tests) lists+=("$top/experiments/packaging/apt-packages-tests.txt") ;;
-h | --help)
  sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"
  exit 0
  ;;
*)
  echo "install_dependencies.sh: '$1' is no option; use --tests or nothing" >&2
  exit 2
  ;;
esac
missing=()
architecture=$(dpkg --print-architecture 2>/dev/null || true)
while read -r package; do # dpkg-query prints a line for each architecture of which the package is installed
  case $'\n'$(dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$package" 2>/dev/null || true)$'\n' in
  *$'\n'"$architecture installed"$'\n'* | *$'\n''all installed'$'\n'*) ;;
  *) missing+=("$package") ;;
  esac
done < <(cat "${lists[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "missing Debian packages; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
  apt-get update -qq
  if [ ! -e /usr/sbin/policy-rc.d ]; then # packages must not start their services
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# elsewhere PATTERN: whether a folder of CMAKE_PREFIX_PATH contains PATTERN
elsewhere() {
  local dir IFS=':;'
  for dir in ${CMAKE_PREFIX_PATH:-}; do
    compgen -G "$dir/$1" >/dev/null && return 0
  done
  return 1
}
wanted=()
elsewhere 'torch/lib/libtorch_cpu.so' || elsewhere 'lib/libtorch_cpu.so' || wanted+=(torch nvidia-cuda-runtime nvidia-cuda-cupti)
elsewhere 'mujoco/libmujoco.so.3.17.0' || elsewhere 'lib/libmujoco.so.3.17.0' || wanted+=(mujoco)
elsewhere 'dm_control/suite/cheetah.xml' || elsewhere 'suite/cheetah.xml' || wanted+=(dm_control)
elsewhere 'gymnasium/envs/mujoco/assets/half_cheetah.xml' || elsewhere 'assets/half_cheetah.xml' || wanted+=(gymnasium)
elsewhere 'pybind11/share/cmake/pybind11/pybind11Config.cmake' || elsewhere 'share/cmake/pybind11/pybind11Config.cmake' || wanted+=(pybind11)

mkdir -p "$deps/wheels"
for name in ${wanted[@]+"${wanted[@]}"}; do
  line=$(grep "^$name==" "$top/experiments/packaging/wheels.txt")
  stamp=$deps/.$name-$(echo "$line" | sha256sum | cut -c1-16)
  [ -e "$stamp" ] && continue
  digest=${line##*sha256:}
  wheel=$(cd "$deps/wheels" && for f in *.whl; do
    [ -f "$f" ] && echo "$digest $f" | sha256sum --check --status 2>/dev/null && echo "$f" && break; done || true)
  if [ -z "$wheel" ]; then
    echo "fetching ${line%% *}"
    requirement=$(mktemp)
    echo "$line" >"$requirement"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
      --implementation cp --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
      --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
      -r "$requirement" -d "$deps/wheels" || {
      rm -f "$requirement"
      echo "could not fetch ${line%% *}: check the network, or put the wheel with checksum $digest into $deps/wheels" >&2
      exit 1
    }
    rm -f "$requirement"
    wheel=$(cd "$deps/wheels" && for f in *.whl; do
      echo "$digest $f" | sha256sum --check --status 2>/dev/null && echo "$f" && break; done || true)
    [ -n "$wheel" ] || { echo "the wheel fetched for ${line%% *} has not the checksum $digest" >&2; exit 1; }
  fi
  echo "unpacking $wheel"
  python3 - "$name" "$deps/wheels/$wheel" "$deps" <<'PY'
import sys, zipfile
name, wheel, target = sys.argv[1:]
keep = {"torch": ("torch/include/", "torch/lib/libtorch_cpu.so", "torch/lib/libc10", "torch/lib/libgomp",
                  "torch/lib/libtorch_cuda.so", "torch/lib/libtorch_nvshmem.so"),
        "mujoco": ("mujoco/include/", "mujoco/libmujoco.so"), "dm_control": ("dm_control/suite/",),
        "gymnasium": ("gymnasium/envs/mujoco/assets/",),
        "pybind11": ("pybind11/include/", "pybind11/share/")}.get(name, ("nvidia/",))
with zipfile.ZipFile(wheel) as archive:
    for member in archive.namelist():
        if member.startswith(keep) and not member.endswith((".py", ".pyi")) or ".dist-info/" in member and "licen" in member.lower():
            archive.extract(member, target)
PY
  rm -f "$deps/wheels/$wheel"
  touch "$stamp"
done
rmdir "$deps/wheels" 2>/dev/null || true
