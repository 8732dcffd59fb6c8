#!/usr/bin/env bash
# The simulated hosts that the other tests use. Usage: hosts_test.sh FRAME_RELAY
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
relay=$(readlink -f "$1")
failures=0 passes=0
verdict() { # verdict SENTENCE COMMAND…
  if "${@:2}" >"$log" 2>&1; then
    passes=$((passes + 1))
    echo "passed: $1"
  else
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    /' "$log"
  fi
}
# holds EXPRESSION VALUES…: evaluates Python's EXPRESSION with the values as v[0], v[1], …
holds() { python3 -c 'import sys; v = [float(x) for x in sys.argv[2:]]; print(v); sys.exit(not eval(sys.argv[1]))' "$@"; }
not() { ! "$@"; }
probe() { on_host "$1" python3 "$here/probe.py" "${@:2}"; }

links() {
  log=/run/hosts/log
  source "$here/host_tools.sh"
  for number in 0 1 2; do
    on_host "$number" python3 "$here/probe.py" serve 4000 >"/run/hosts/probe$number" &
  done
  for number in 0 1 2; do verdict "host$number answers" wait_for 30 grep -q ready "/run/hosts/probe$number"; done
  verdict "a host has its own name" [ "$(on_host 1 hostname)" = host1 ]
  verdict "hosts reach each other by name" probe 0 connect host1 4000 10
  verdict "the command reaches the hosts" python3 "$here/probe.py" connect host2 4000 10
  verdict "what runs, listens and is held in memory on a host is counted" left_somewhere

  link_rate 1 80
  verdict "a link's rate is its limit" holds '0 < v[0] <= 100' "$(probe 0 rate host1 4000 4194304)"
  link_rate 1 0
  verdict "without a limit it is faster" holds 'v[0] > 100' "$(probe 0 rate host1 4000 4194304)"

  link_down 1
  verdict "nobody reaches a host whose link is down" not probe 0 connect host1 4000 1
  link_up 1
  verdict "it is there again" wait_for 20 probe 0 connect host1 4000 2

  cut_hosts 0 1
  verdict "two hosts that are cut off from each other do not hear each other" not probe 1 connect host0 4000 1
  verdict "others hear both" probe 2 connect host0 4000 10
  mend_host 0
  verdict "both are together again" probe 1 connect host0 4000 10

  link_delay "$relay" 2 20 0
  verdict "a delay of 20 ms each way is a round trip of 40" holds '40 <= v[0] <= 400' "$(probe 0 rtt host2 4000 3)"
  verdict "nothing is lost that shall not be" holds 'v[0] == 0' "$(probe 0 lost host2 4000 1000)"
  link_delay "$relay" 2 0 10
  verdict "a tenth is lost" holds '60 <= v[0] <= 140' "$(probe 1 lost host2 4000 1000)"
  verdict "a stream arrives all the same" probe 0 rate host2 4000 1048576
  finish
}
left_somewhere() {
  local left
  on_host 2 touch /dev/shm/segment
  left=$(left_on_hosts)
  echo "$left"
  [ "$(grep -c 'probe.py serve' <<<"$left")" = 3 ] && [ "$(grep -c 'socket .*:4000' <<<"$left")" = 6 ] && grep -q '^host2: shared memory segment$' <<<"$left"
}

finish() {
  echo "$passes passed, $failures failed"
  [ "$failures" = 0 ]
}

if [ "${2:-}" = links ]; then
  links
  exit
fi
command -v nft >/dev/null || PATH=$PATH:/usr/sbin command -v nft >/dev/null || { echo "skipped: nft is not installed; apt-get install --no-install-recommends nftables"; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mark=hosts_test_$$
interfaces() { ip -o link | cut -d : -f 2; }
marked() { grep -lzE "^MARK=$mark" /proc/[0-9]*/environ 2>/dev/null || true; }
none_left() { [ -z "$(marked)" ]; }
before=$(interfaces)
code=0
MARK=$mark "$here/hosts.sh" -N 3 "$0" "$relay" links || code=$?
[ $code != 77 ] || exit 77
verdict "a command's exit code is its own" [ $code = 0 ]

# Two more instances, at the same addresses, are killed while they run.
source_wait() { local end=$((SECONDS + 60)); until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done; }
for number in 1 2; do
  MARK=$mark "$here/hosts.sh" -N 2 bash -c 'echo up; exec sleep infinity' >"$log.$number" &
  instances[number]=$!
  disown # bash would say that it was killed
done
for number in 1 2; do verdict "instance $number is up beside the other" source_wait grep -q up "$log.$number"; done
kill -9 "${instances[1]}"
kill -TERM "${instances[2]}"
verdict "nothing is left of hosts that ended or were killed" source_wait none_left
verdict "this host has the interfaces that it had" [ "$(interfaces)" = "$before" ]
rm -f "$log".?
finish
