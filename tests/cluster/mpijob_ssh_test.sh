#!/usr/bin/env bash
# The image's SSH files for Kubeflow's MPIJobs, with the real sshd and ssh: the job's key is accepted, and no other key, host or method is.
# Usage: mpijob_ssh_test.sh TOP_OF_THE_REPOSITORY. Says "skipped:" where there is no sshd.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
top=$(readlink -f "$1")
for program in sshd ssh ssh-keygen; do
  command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed; apt-get install --no-install-recommends openssh-server openssh-client"
    exit 77
  }
done
folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd # where root's sshd locks itself in; a pod's has no privileges to drop
mkdir -m 700 "$folder/.ssh"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$folder/.ssh/id_rsa"
cp "$folder/.ssh/id_rsa.pub" "$folder/.ssh/authorized_keys"
ssh-keygen -q -t rsa -b 2048 -N '' -f "$folder/other"
for file in sshd_config ssh_config; do
  sed "s|/opt/troupe|$folder|; s|^Port 2222|Port $port|" "$top/experiments/cluster/mpijob_$file" >"$folder/$file"
done
printf '#!/bin/sh\nexec %s %s\n' "$top/experiments/cluster/mpijob_known_hosts.sh" "$folder/.ssh/id_rsa.pub" >"$folder/known_hosts.sh"
chmod 755 "$folder" "$folder/known_hosts.sh"
echo 'ListenAddress 127.0.0.1' >>"$folder/sshd_config"
"$(command -v sshd)" -De -f "$folder/sshd_config" 2>"$folder/log" &
server=$!
for _ in $(seq 100); do
  grep -q 'Server listening' "$folder/log" && break
  kill -0 "$server" || { cat "$folder/log"; exit 1; }
  sleep 0.1
done
sed "s|^IdentityFile .*|IdentityFile $folder/other|" "$folder/ssh_config" >"$folder/other_config"
config=$folder/ssh_config
enter() { timeout 30 ssh -F "$config" "$@" 127.0.0.1 echo inside 2>"$folder/said"; }
fail() {
  echo "FAILED: $1"
  cat "$folder/said" "$folder/log"
  exit 1
}
[ "$(enter)" = inside ] || fail "the job's key comes in"
config=$folder/other_config
! enter -o IdentitiesOnly=yes || fail "another key is refused"
config=$folder/ssh_config
grep -q 'Permission denied' "$folder/said" || fail "another key is refused as such"
! enter -o PubkeyAuthentication=no || fail "nobody comes in without a key"
cp "$folder/other.pub" "$folder/.ssh/id_rsa.pub"
! enter || fail "a host with another key is no worker"
grep -q 'verification failed' "$folder/said" || fail "a host with another key is refused as such"
echo "4 passed"
