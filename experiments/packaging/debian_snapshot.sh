#!/bin/sh
# Makes apt install Debian's packages as they were at a date, from an archive of Debian's snapshots. Used by the Dockerfile.
# Usage: debian_snapshot.sh DATE ARCHIVE [FOLDER]; DATE: 20261101T000000Z, or empty to change nothing; ARCHIVE: the address of the folder with debian/DATE and
# debian-security/DATE; FOLDER: of apt's configuration, by default /etc/apt.
set -eu
date=$1 archive=$2
apt=${3:-/etc/apt}
[ -n "$date" ] || exit 0
case $date in
[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z) ;;
*)
  echo "SNAPSHOT=$date: must be the date of a snapshot of Debian, for example 20261101T000000Z" >&2
  exit 2
  ;;
esac
valid=no
case $archive in
*[[:space:]]*) ;;
http://?* | https://?*) valid=yes ;;
esac
if [ "$valid" = no ]; then
  echo "SNAPSHOT_ARCHIVE=$archive: SNAPSHOT is $date, so this must be the http or https address of an archive of Debian's snapshots, the folder with" \
    "debian/$date; add --build-arg SNAPSHOT_ARCHIVE=ADDRESS, or leave SNAPSHOT out for the newest packages" >&2
  exit 2
fi
rm -f "$apt/sources.list.d/debian.sources"
for part in 'debian bookworm' 'debian bookworm-updates' 'debian-security bookworm-security'; do
  echo "deb [check-valid-until=no] ${archive%/}/${part%% *}/$date ${part##* } main"
done >"$apt/sources.list"
