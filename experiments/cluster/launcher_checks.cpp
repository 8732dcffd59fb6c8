#include <algorithm>
#include <cmath>
#include <cstdint>

#include "experiments/cluster/cluster_checks.hpp"
#include "experiments/cluster/slurm_script.hpp"

namespace troupe::experiments {
namespace {

bool is_word(const std::string& text) {
  return (text.empty() || text.front() != '-')
         && std::all_of(text.begin(), text.end(),
                        [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

std::string node_key(int index) {
  return std::string("node[") + std::to_string(index) + "]";
}

class LauncherChecker {
public:
  explicit LauncherChecker(const Cluster& cluster) : cluster_(cluster) {}

  std::vector<std::pair<std::string, std::string>> check() {
    check_words();
    check_kubernetes();
    check_slurm();
    check_ssh_and_mpi();
    if (cluster_.has_ray()) {
      check_sizes("ray", false);
    }
    return std::move(complaints_);
  }

private:
  void complain(const std::string& key, const std::string& text) {
    complaints_.emplace_back(key, text);
  }

  /// Checks the values that become words of a command or a script.
  void check_words() {
    for (const auto& [key, text] : {std::pair{"ssh.user", cluster_.ssh().user()},
                                    {"ssh.program", cluster_.ssh().program()},
                                    {"slurm.partition", cluster_.slurm().partition()},
                                    {"slurm.account", cluster_.slurm().account()},
                                    {"slurm.qos", cluster_.slurm().qos()},
                                    {"slurm.constraint", cluster_.slurm().constraint()},
                                    {"slurm.gpu_resource", cluster_.slurm().gpu_resource()},
                                    {"slurm.program", cluster_.slurm().program()},
                                    {"mpi.mpirun", cluster_.mpi().mpirun()},
                                    {"mpi.program", cluster_.mpi().program()},
                                    {"ray.address", cluster_.ray().address()},
                                    {"ray.python", cluster_.ray().python()},
                                    {"ray.program", cluster_.ray().program()}}) {
      if (!is_word(text)) {
        complain(key, "is \"" + text + "\"; it must be one word that does not begin with '-'");
      }
    }
    for (const std::string& option : cluster_.slurm().option()) {
      if (!option.starts_with("-")
          || !is_word(option.substr(1).erase(0, option[1] == '-' ? 1 : 0))) {
        complain("slurm.option", "has \"" + option
                                     + "\"; write an option of sbatch as one word, e.g. "
                                       "\"--comment=mine\"");
      }
    }
  }

  void check_sizes(const char* launcher, bool memory) {
    for (int i = 0; i < cluster_.node_size(); ++i) {
      const ClusterNode& block = cluster_.node(i);
      const std::string key = node_key(i);
      if (block.cores() == 0) {
        complain(key + ".cores", std::string("is 0; ") + launcher
                                     + " needs to know what to ask for: give a number");
      }
      if (memory && block.memory_bytes() == 0) {
        complain(key + ".memory_bytes", std::string("is 0; ") + launcher
                                            + " needs to know what to ask for: give a number");
      }
      if (block.numa_size() > 0) {
        complain(key + ".numa", std::string("is given; with ") + launcher
                                    + " nodes find theirs when they start, so leave it out");
      }
      if (!block.address().empty()) {
        complain(key + ".address",
                 std::string("is given; ") + launcher + " chooses the hosts, so leave it out");
      }
    }
  }

  void check_kubernetes() {
    if (!cluster_.has_kubernetes()) {
      return;
    }
    const auto& k8s = cluster_.kubernetes();
    check_sizes("kubernetes", true);
    if (k8s.storage_claim().empty()) {
      complain("kubernetes.storage_claim",
               "is missing; name a PersistentVolumeClaim (ReadWriteMany) that every pod mounts");
    }
    if (!cluster_.runs().starts_with("/") || cluster_.runs() == "/") {
      complain("runs", "is \"" + cluster_.runs()
                           + "\"; with kubernetes it must be an absolute path, at which the pods "
                             "mount kubernetes.storage_claim, e.g. \"/runs\"");
    }
    if (!cluster_.head().node().empty()) {
      complain("head.node", "is given, but with kubernetes the head has its own pod; leave it out");
    }
    if (cluster_.head().memory_bytes() == 0 || cluster_.head().cores() == 0) {
      complain(cluster_.head().cores() == 0 ? "head.cores" : "head.memory_bytes",
               "is 0; kubernetes needs to know what to ask for: give a number");
    }
    for (const std::string& text : k8s.node_selector()) {
      if (!key_and_value(text)) {
        complain("kubernetes.node_selector", "has \"" + text + "\"; " + kLabelForm);
      }
    }
    for (int i = 0; i < cluster_.node_size(); ++i) {
      if (cluster_.node(i).name() == "head") {
        complain(
            node_key(i) + ".name",
            "is \"head\"; with kubernetes the head's own Job has that name, so choose another");
      }
      if (cluster_.node(i).memory_bytes() > 0
          && cluster_.node(i).memory_bytes() <= k8s.shared_memory_bytes()) {
        complain(node_key(i) + ".memory_bytes",
                 "is " + std::to_string(cluster_.node(i).memory_bytes())
                     + "; it must be above kubernetes.shared_memory_bytes, which are part of it");
      }
    }
  }

  void check_slurm() {
    if (!cluster_.has_slurm()) {
      return;
    }
    check_sizes("slurm", false);
    // A job that is signalled at its start would be requeued again and again without training.
    const std::int64_t before_end = slurm_signal_seconds(cluster_) + 60;
    const auto limit = 60 * static_cast<std::int64_t>(std::ceil(cluster_.slurm().minutes()));
    if (limit <= before_end) {
      complain("slurm.minutes",
               "gives the job " + std::to_string(limit) + " s; Slurm may ask it to stop "
                   + std::to_string(before_end)
                   + " s before that (supervision.grace_seconds and 90 s), so give more, or lower "
                     "supervision.grace_seconds");
    }
    if (cluster_.node_size() > 1) {
      complain(
          "node[1]",
          "is given; all nodes of a Slurm job are alike: write one node block with their count");
    }
  }

  void check_ssh_and_mpi() {
    if (!cluster_.has_ssh() && !cluster_.has_mpi()) {
      return;
    }
    if (cluster_.has_mpi() && !cluster_.mpi().hostfile().empty()) {
      return;
    }
    for (int i = 0; i < cluster_.node_size(); ++i) {
      if (cluster_.node(i).address().empty()) {
        complain(node_key(i) + ".address", cluster_.has_ssh()
                                               ? "is missing; SSH needs the host's name or address"
                                               : "is missing; give it, or mpi.hostfile");
      }
    }
    if (cluster_.has_ssh() && !cluster_.ssh().folder().starts_with("/")) {
      complain("ssh.folder", "is \"" + cluster_.ssh().folder() + "\"; it must be an absolute path");
    }
  }

  const Cluster& cluster_;
  std::vector<std::pair<std::string, std::string>> complaints_;
};

} // namespace

std::vector<std::pair<std::string, std::string>> check_launcher(const Cluster& cluster) {
  return LauncherChecker(cluster).check();
}

} // namespace troupe::experiments
