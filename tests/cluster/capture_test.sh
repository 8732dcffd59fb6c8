#!/usr/bin/env bash
# What an eavesdropper sees of synchronous training: D4PG with a learner on each of two hosts (network namespaces), by SSH, while every
# frame between them is captured. When encrypted, each long connection looks like noise. On a network that the user declares trusted, the
# gradients of the same run are visible, which proves that the check can fail. Prints bytes, bits of entropy per byte and updates/s.
# Usage: capture_test.sh TROUPE FOLDER [--seconds S] [--rounds N] [--rates MBIT,…]
#   --seconds 10: training time of each run; --rounds 0: further runs of both kinds in turn, without capture, after the two captured ones
#   --rates 0: rate limits of the link between the hosts for these rounds; 0: none
# Fails if encryption adds more than a tenth to the bytes of an update or, in the rounds, takes more than 30% of the updates/s.
# Exit code: 0 all checks passed; 1 one failed; 77 this machine lacks what hosts.sh needs (prints "skipped:").
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 2 ] || { sed -n 2,10p "$0" >&2; exit 2; }
troupe=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
PYTHONDONTWRITEBYTECODE=1 exec bash "$here/hosts.sh" -N 2 --sshd python3 "$here/capture_test.py" "$troupe" "$(realpath "$2")" "${@:3}"
