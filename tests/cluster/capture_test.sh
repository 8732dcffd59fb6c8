#!/usr/bin/env bash
# What a stranger on the wire sees of synchronous training: D4PG with a learner on each of two hosts (network namespaces), by SSH, while every
# frame between them is captured. Encrypted, each long connection looks like noise; on a network that the user calls trusted, the gradients of
# the same run are seen, so that the check can fail. Prints bytes, bits of entropy per byte and updates/s.
# Usage: capture_test.sh TROUPE FOLDER [--seconds S] [--rounds N] [--rates MBIT,…]
#   --seconds 10: of training in each run; --rounds 0: of both kinds of run in turn, after the two that are captured, not captured
#   --rates 0: limits of the link between the hosts at which the rounds run; 0: none
# Exit code: 0 all held; 1 something did not; 77 this machine lacks what hosts.sh takes (says "skipped:").
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 2 ] || { sed -n 2,9p "$0" >&2; exit 2; }
troupe=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
PYTHONDONTWRITEBYTECODE=1 exec bash "$here/hosts.sh" -N 2 --sshd python3 "$here/capture_test.py" "$troupe" "$(realpath "$2")" "${@:3}"
