#!/usr/bin/env bash
# Installs what Troupe is built with on Debian 12 and prints nothing when all of it is there.
#   Debian packages: experiments/apt-packages.txt. Wheels: experiments/wheels.txt, by checksum, unpacked into build/third_party
#   (nothing is installed into any Python). A LibTorch, MuJoCo or models folder elsewhere: name it in CMAKE_PREFIX_PATH.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=${TROUPE_DEPENDENCIES:-$top/build/third_party}

missing=()
while read -r package; do
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null)" = "ii " ] || missing+=("$package")
done <"$top/experiments/apt-packages.txt"
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "missing Debian packages; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# elsewhere PATTERN: is it under one of the folders that CMAKE_PREFIX_PATH names?
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

mkdir -p "$deps/wheels"
for name in ${wanted[@]+"${wanted[@]}"}; do
  line=$(grep "^$name==" "$top/experiments/wheels.txt")
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
        "gymnasium": ("gymnasium/envs/mujoco/assets/",)}.get(name, ("nvidia/",))
with zipfile.ZipFile(wheel) as archive:
    for member in archive.namelist():
        if member.startswith(keep) and not member.endswith((".py", ".pyi")) or ".dist-info/" in member and "LICENSE" in member:
            archive.extract(member, target)
PY
  rm -f "$deps/wheels/$wheel"
  touch "$stamp"
done
rmdir "$deps/wheels" 2>/dev/null || true
