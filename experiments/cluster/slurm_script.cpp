#include "experiments/cluster/slurm_script.hpp"

#include <cmath>

#include "experiments/cluster/cluster.hpp"

namespace troupe::experiments {
namespace {

constexpr int kSpareSeconds = 30; // for the nodes to end after the head has

void add_directive(std::string& out, const std::string& option, const std::string& value) {
  if (!value.empty()) {
    out += "#SBATCH --" + option + "=" + value + "\n";
  }
}

std::string directives(const Cluster& cluster) {
  const auto& slurm = cluster.slurm();
  const ClusterNode& node = cluster.node(0);
  const auto mebibytes = (node.memory_bytes() + (1 << 20) - 1) >> 20;
  std::string out;
  add_directive(out, "job-name", cluster.name());
  add_directive(out, "nodes", std::to_string(node.count()));
  add_directive(out, "ntasks", std::to_string(node.count()));
  add_directive(out, "ntasks-per-node", "1");
  add_directive(out, "cpus-per-task", std::to_string(node.cores()));
  add_directive(out, "mem", mebibytes > 0 ? std::to_string(mebibytes) + "M" : "");
  add_directive(out, "gres",
                node.gpus() > 0 ? slurm.gpu_resource() + ":" + std::to_string(node.gpus()) : "");
  add_directive(out, "time", std::to_string(static_cast<std::int64_t>(std::ceil(slurm.minutes()))));
  add_directive(out, "partition", slurm.partition());
  add_directive(out, "account", slurm.account());
  add_directive(out, "qos", slurm.qos());
  add_directive(out, "constraint", slurm.constraint());
  add_directive(out, "signal",
                std::string("B:TERM@") + std::to_string(slurm_signal_seconds(cluster)));
  add_directive(out, "open-mode", "append");
  add_directive(out, "output", cluster.name() + "-%j.log");
  out += slurm.exclusive() ? "#SBATCH --exclusive\n" : "";
  out += slurm.requeue() ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";
  for (const std::string& option : slurm.option()) {
    out += "#SBATCH " + option + "\n";
  }
  return out;
}

/// Starts head and nodes, forwards SIGTERM to the head, and exits with its code.
constexpr const char* kBody = R"sh(
# Runs in each task: restarts a node that fails, at most RESTARTS times. A signal ends the node and the task.
keep_node() { # TROUPE HEAD NAME NODES JOIN_SECONDS RESTARTS
  local name=$3 left=$6 node='' stopped=0 code
  [ "$4" = 1 ] || name=$3-$SLURM_PROCID # a node's name contains its task number
  trap 'stopped=1; [ -z "$node" ] || kill -TERM "$node" 2>/dev/null' TERM INT
  while [ "$stopped" = 0 ]; do
    code=0
    "$1" node --head "$2" --name "$name" --join-seconds "$5" &
    node=$!
    wait "$node" || code=$?
    [ "$stopped" = 0 ] || wait "$node" || code=$? # the trap has ended the first wait
    node=''
    if [ "$code" = 0 ] || [ "$left" = 0 ] || [ "$stopped" = 1 ]; then break; fi
    left=$((left - 1))
    echo "node $name ended with exit code $code; restarting it" >&2
    sleep 5
  done
  exit "$code"
}

head_host=${SLURMD_NODENAME:-$(hostname)}
if [ "$address" != '' ]; then head_host=$address; fi
[ "$port" != 0 ] || port=$((20000 + SLURM_JOB_ID % 10000))
resume=()
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || resume=(--resume)

# The head runs in the batch step, beside the first node.
"$troupe" launch "$cluster" "$experiment" --launcher none --listen "$listen:$port" --runs "$runs" ${resume[@]+"${resume[@]}"} &
head=$!
stopped=0
trap 'stopped=1; kill -TERM "$head" 2>/dev/null || true' TERM INT
srun --overlap --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpus-per-task="$cores" --kill-on-bad-exit=0 --wait=0 \
  bash -c "$(declare -f keep_node); keep_node \"\$@\"" task "$troupe" "$head_host:$port" "$name" "$nodes" "$join_seconds" "$restarts" &
steps=$!

code=0
asked=0
wait "$head" || code=$?
while [ "$stopped" = 1 ]; do # the trap has ended that wait
  stopped=0
  asked=1
  again=0
  wait "$head" || again=$?
  [ "$again" = 127 ] || code=$again
done
for _ in $(seq 300); do # nodes end when the head asks them to, or when they lose it
  kill -0 "$steps" 2>/dev/null || break
  sleep 0.1 || true
done
kill -TERM "$steps" 2>/dev/null || true
wait "$steps" || true
# Its time is over, not its training: Slurm requeues a preempted job, and no cancelled one.
if [ "$asked" = 1 ] && [ "$code" = 0 ] && [ "$requeue" = 1 ] && [ "$(squeue -h -j "$SLURM_JOB_ID" -o %T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)sh";

} // namespace

std::int64_t slurm_signal_seconds(const Cluster& cluster) {
  return static_cast<std::int64_t>(std::ceil(cluster.supervision().grace_seconds()))
         + kSpareSeconds;
}

std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out + "'";
}

std::string slurm_script(const Cluster& cluster, const LaunchFiles& files) {
  const HostPort listen = head_endpoint(cluster);
  const HostPort told = head_endpoint(cluster, true);
  const ClusterNode& node = cluster.node(0);
  const auto set = [](const std::string& name, const std::string& value) {
    return name + "=" + shell_word(value) + "\n";
  };
  std::string out = "#!/bin/bash\n# The cluster " + cluster.name()
                    + " as a Slurm job: submit this file with sbatch.\n" + directives(cluster);
  if (cluster.slurm().setup_size() > 0) {
    out += "# slurm.setup precedes `set`: scripts such as conda's fail under it.\n";
  }
  for (const std::string& line : cluster.slurm().setup()) {
    out += line + "\n";
  }
  out += "set -euo pipefail\n" + set("troupe", cluster.slurm().program())
         + set("cluster", files.cluster.string()) + set("experiment", files.experiment.string())
         + set("runs", files.runs.string())
         + set("listen",
               listen.host.find(':') == std::string::npos ? listen.host : "[" + listen.host + "]")
         + set("address", cluster.head().address().empty() ? "" : told.host)
         + set("port", std::to_string(listen.port)) + set("name", node.name())
         + set("nodes", std::to_string(node.count())) + set("cores", std::to_string(node.cores()))
         + set("join_seconds", std::to_string(node_join_seconds(cluster)))
         + set("restarts", std::to_string(cluster.supervision().node_losses()))
         + set("requeue", cluster.slurm().requeue() ? "1" : "0");
  if (!cluster.keys().empty()) {
    out += "export TROUPE_KEYS=" + shell_word(cluster.keys()) + "\n";
  }
  return out + kBody;
}

} // namespace troupe::experiments
