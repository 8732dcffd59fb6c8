# Functions that the tests of runs over processes share. The script that sources this sets the run's `name` and the folder `scratch`, which has the output in `out` and
# the runs below `runs`. After the start it sets `run` to the run's process.
fail() {
  echo "$1"
  tail -n 30 "$scratch/out" "$scratch"/runs/"$name"/*/{log.txt,nodes.log} 2>/dev/null
  kill -9 "$run" 2>/dev/null
  exit 1
}
until_true() { # what is waited for, a command: at most two minutes of looking
  local what=$1
  shift
  for _ in $(seq 1200); do
    kill -0 "$run" 2>/dev/null || fail "the run ended before $what"
    "$@" && return
    read -r -t 0.1 <> <(:) || true
  done
  fail "never saw $what"
}
column() { # of the newest row of metrics.csv, or 0
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i } END { printf "%d", $at }' "$scratch"/runs/"$name"/*/metrics.csv 2>/dev/null || echo 0
}
reached() { # updates that only training can exceed: a head that comes back begins its rows with those of a checkpoint
  { column updates; echo; ls "$scratch"/runs/"$name"/*/checkpoints 2>/dev/null; } | grep -E '^[0-9]+$' | sort -n | tail -n 1
}
above() { [ "$(column updates)" -gt "$1" ]; }
head_process() { pgrep -P "$run" -x troupe | grep -vxFf <(pgrep -f ' actor --role '; echo none) | head -n 1; } # which the run's process watches, as it does processes of a dead one
victim() { pgrep -P "$run,$(head_process)" -f "role $1 --index $2 " | head -n 1; } # of a run on this host: its process of a role
end_run() { # by SIGTERM: with a checkpoint, and nothing is left
  kill -TERM "$run"
  wait "$run"
  local code=$?
  [ "$code" = 0 ] || fail "exit code $code"
  pgrep -f "$scratch/runs" >/dev/null && fail 'a process was left behind'
  ls "$scratch"/runs/"$name"/*/checkpoints/*/manifest.json >/dev/null || fail 'no checkpoint'
}
