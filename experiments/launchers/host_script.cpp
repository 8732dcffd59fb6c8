#include "experiments/launchers/host_script.hpp"

#include "experiments/launchers/command_text.hpp"

namespace troupe::experiments::launchers {
namespace {

// Its processes know the folder by their environment; a node's children inherit that.
constexpr const char* kSweep = R"sh(
sweep() { # sweep FOLDER: kills what was started for it, removes it
  local process
  for process in /proc/[0-9]*; do
    if [ -r "$process/environ" ] && tr '\0' '\n' <"$process/environ" | grep -qxF "TROUPE_LAUNCH_FOLDER=$1"; then
      kill -KILL "${process#/proc/}"
    fi
  done
  rm -rf -- "$1"
}
)sh";

// Commands, one per line: `has BYTES SHA256 PATH` (answer: same, other or missing; SHA256 -: any
// file is the same), `file BYTES MODE NAME` and then the bytes (answer: got), `set |NAME=VALUE|`,
// `cd PATH`, `word |WORD|`, `run` (answers: started PROCESS, later ended CODE), an empty line: a
// sign of life, `stop SECONDS`.
constexpr const char* kLaunch = R"sh(
launch() {
  local say=$1 base=$2 limit=$3 lost=$4 grace=$5 folder order rest size mode sum name node watcher code i
  local words=() variables=()
  trap '' HUP PIPE
  umask 077
  folder=$(mktemp -d "$base/troupe-node.XXXXXXXX" 2>&1) || { echo "$say failed cannot make a folder in $base: $folder"; exit 3; }
  trap 'rm -rf -- "$folder"' EXIT
  echo "$say folder $folder"
  while IFS=' ' read -r -t "$limit" order rest; do
    case $order in
    has)
      IFS=' ' read -r size sum name <<<"$rest"
      if [ ! -r "$name" ]; then
        echo "$say missing"
      elif [ "$sum" = - ] || { [ "$(stat -L -c %s -- "$name")" = "$size" ] && [ "$(sha256sum <"$name" | cut -c 1-64)" = "$sum" ]; }; then
        echo "$say same"
      else
        echo "$say other"
      fi
      ;;
    file)
      IFS=' ' read -r size mode name <<<"$rest"
      mkdir -p "$(dirname "$folder/$name")" && head -c "$size" >"$folder/$name" && chmod "$mode" "$folder/$name" &&
        [ "$(stat -c %s "$folder/$name")" = "$size" ] || { echo "$say failed cannot write $folder/$name"; exit 3; }
      echo "$say got"
      ;;
    set) variables+=("${rest:1:-1}") ;;
    word) words+=("${rest:1:-1}") ;;
    cd) cd -- "$rest" 2>/dev/null || cd "$folder" ;;
    run) break ;;
    esac
  done
  [ "$order" = run ] || exit 3
  [ ! -d "$folder/lib" ] || variables+=("LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  exec 3<&0 4>&2 2>/dev/null
  set -m # the node and its watcher have their own process groups
  TROUPE_LAUNCH_FOLDER=$folder env "${variables[@]}" "${words[@]}" </dev/null 2>&4 3<&- 4>&- &
  node=$!
  echo "$say started $node"
  (
    while IFS=' ' read -r -t "$lost" -u 3 order rest; do
      [ "$order" != stop ] || { grace=$rest; break; }
    done
    kill -TERM "$node"
    for ((i = 0; i < grace * 10; ++i)); do
      kill -0 -- "-$node" || exit
      sleep 0.1
    done
    kill -KILL -- "-$node"
  ) >/dev/null 4>&- &
  watcher=$!
  set +m
  exec 3<&-
  wait "$node"
  code=$?
  kill -KILL -- "-$watcher"
  kill -KILL -- "-$node"
  trap - EXIT
  sweep "$folder"
  echo "$say ended $code"
  exit "$code"
}
)sh";

} // namespace

std::string host_script(const std::string& word, const std::string& folder, long start_limit,
                        long lost, long grace) {
  return std::string(kSweep) + kLaunch + "launch " + quoted(word) + " " + quoted(folder) + " "
         + std::to_string(start_limit) + " " + std::to_string(lost) + " " + std::to_string(grace)
         + "\n";
}

std::string clean_up_script(const std::string& word, const std::string& folder) {
  return std::string(kSweep) + "sweep " + quoted(folder) + "\necho " + quoted(word)
         + " removed\nexit\n";
}

} // namespace troupe::experiments::launchers
