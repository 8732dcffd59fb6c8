#!/bin/sh
# Makes apt install Debian's packages as they were at a date, from snapshot.debian.org. Used by the Dockerfile.
# Usage: debian_snapshot.sh DATE [FOLDER]; DATE: 20261101T000000Z, or empty to change nothing; FOLDER: of apt's configuration, by default /etc/apt.
set -eu
date=$1
apt=${2:-/etc/apt}
[ -n "$date" ] || exit 0
case $date in
[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z) ;;
*)
  echo "SNAPSHOT=$date: must be a date of snapshot.debian.org, for example 20261101T000000Z" >&2
  exit 2
  ;;
esac
rm -f "$apt/sources.list.d/debian.sources"
for part in 'debian bookworm' 'debian bookworm-updates' 'debian-security bookworm-security'; do
  echo "deb [check-valid-until=no] http://snapshot.debian.org/archive/${part%% *}/$date ${part##* } main"
done >"$apt/sources.list"
