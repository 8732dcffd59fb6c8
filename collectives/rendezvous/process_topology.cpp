#include "collectives/rendezvous/process_topology.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#define XXH_INLINE_ALL // users of the installed library need not link xxhash
#include <xxhash.h>

#include "collectives/mesh/socket.hpp"
#include "collectives/rendezvous/node_list.hpp"

namespace troupe::collectives {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr std::uint64_t kFirstStepAside = 0xfffffff0; // special steps, e.g. the batch script

/// Reads environment variables and rejects invalid values.
class Variables {
public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool has(const std::string& name) const { return environment_(name).has_value(); }

  std::string text(const std::string& name, const std::string& otherwise = {}) const {
    return environment_(name).value_or(otherwise);
  }

  /// Returns a whole number in [low, high]. `partner` is the variable that is set and requires this
  /// one.
  int number(const std::string& name, int low, int high, const std::string& partner) const {
    const auto value = environment_(name);
    if (!value)
      throw std::invalid_argument(name + " is not set, but " + partner
                                  + " is; set both, or unset both");
    int result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc() || end != value->data() + value->size() || result < low
        || result > high)
      refuse(name, "must be a whole number in [" + std::to_string(low) + ", " + std::to_string(high)
                       + "]");
    return result;
  }
  int number(const std::string& name, int low, int high, int otherwise) const {
    return has(name) ? number(name, low, high, std::string()) : otherwise;
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& rule) const {
    throw std::invalid_argument(name + " is \"" + text(name) + "\"; it " + rule
                                + "; correct it, or name another source of the topology");
  }

private:
  const Environment& environment_;
};

/// Reads MASTER_ADDR and MASTER_PORT, of which both or neither must be set.
bool take_master(const Variables& variables, ProcessTopology& place) {
  if (!variables.has("MASTER_ADDR") && !variables.has("MASTER_PORT"))
    return false;
  if (!variables.has("MASTER_ADDR"))
    throw std::invalid_argument(
        "MASTER_ADDR is not set, but MASTER_PORT is; set both, or unset both");
  place.rendezvous_port = variables.number("MASTER_PORT", 1, 65535, "MASTER_ADDR");
  try {
    place.rendezvous_host = variables.text("MASTER_ADDR");
    if (place.rendezvous_host.find(':') == std::string::npos)
      parse_endpoint(place.rendezvous_host, true);
  } catch (const std::invalid_argument& error) {
    variables.refuse("MASTER_ADDR", std::string("is no host: ") + error.what());
  }
  return true;
}

/// Uses loopback, for processes on one host, and a port that the whole job derives equally.
void stay_at_home(ProcessTopology& place, std::uint64_t job) {
  constexpr std::uint64_t kFirst = 20'000, kPorts = 10'000; // below ephemeral ports
  place.rendezvous_host = "127.0.0.1";
  place.rendezvous_port = static_cast<int>(kFirst + job % kPorts);
  place.address = "127.0.0.1";
}

/// The hash is the same on every host.
std::uint64_t hash_of(const std::string& text) {
  return XXH3_64bits(text.data(), text.size());
}

void read_local(const Variables& variables, ProcessTopology& place, const std::string& rank,
                const std::string& size) {
  if (!variables.has(rank) && !variables.has(size)) { // unknown: assume a single host
    place.local_rank = place.size == 1 ? 0 : place.rank;
    place.local_size = place.size;
    return;
  }
  place.local_size = variables.number(size, 1, place.size, rank);
  place.local_rank = variables.number(rank, 0, place.local_size - 1, size);
}

// --- the sources; each function is called if the source's first variable is set

ProcessTopology from_hosts(const Variables& variables, const ReadFile& read_file) {
  ProcessTopology place;
  place.source = "hosts";
  std::vector<HostSlots> hosts;
  try {
    hosts = parse_host_file(read_file(variables.text("TROUPE_HOSTS")));
  } catch (const std::exception& error) {
    variables.refuse("TROUPE_HOSTS", std::string("must name a host file: ") + error.what());
  }
  std::int64_t total = 0;
  for (const auto& host : hosts)
    total += host.slots;
  if (total > kMostRanks)
    variables.refuse("TROUPE_HOSTS", "has " + std::to_string(total) + " slots; at most "
                                         + std::to_string(kMostRanks) + " are allowed");
  place.size = static_cast<int>(total);
  place.rank = variables.number("TROUPE_RANK", 0, place.size - 1, "TROUPE_HOSTS");
  place.role_index = place.rank;
  place.local_rank = place.rank;
  auto mine = hosts.begin();
  for (; place.local_rank >= mine->slots; ++mine)
    place.local_rank -= mine->slots;
  place.local_size = mine->slots;
  place.address = mine->host.host;
  place.rendezvous_host = hosts[0].host.host;
  place.rendezvous_port = hosts[0].host.port;
  if (place.rendezvous_port == 0 && place.size > 1)
    variables.refuse("TROUPE_HOSTS", "must give the first host a port, \"" + place.rendezvous_host
                                         + ":29500\", where rank 0 serves the rendezvous");
  return place;
}

ProcessTopology from_torchrun(const Variables& variables) {
  ProcessTopology place;
  place.source = "torchrun";
  place.size = variables.number("WORLD_SIZE", 1, kMostRanks, "RANK");
  place.rank = variables.number("RANK", 0, place.size - 1, "WORLD_SIZE");
  place.role_index = place.rank;
  place.rendezvous_file = variables.text("TROUPE_RENDEZVOUS");
  const bool master = !place.rendezvous_file.empty() || take_master(variables, place);
  if (!master && place.size > 1)
    throw std::invalid_argument("MASTER_ADDR and MASTER_PORT are not set, but RANK and WORLD_SIZE "
                                "are; set them to where rank 0 serves the rendezvous");
  place.rendezvous_served = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.attempt = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMostRanks, 0);
  if (!variables.has("LOCAL_WORLD_SIZE") && variables.has("LOCAL_RANK")) { // often set by hand
    place.local_rank = variables.number("LOCAL_RANK", 0, place.rank, "RANK");
    place.local_size = is_loopback(place.rendezvous_host) ? place.size : place.local_rank + 1;
  } else {
    read_local(variables, place, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  }
  if (variables.has("GROUP_RANK") || variables.has("GROUP_WORLD_SIZE")) // only checked
    variables.number("GROUP_RANK", 0,
                     variables.number("GROUP_WORLD_SIZE", 1, place.size, "GROUP_RANK") - 1,
                     "GROUP_WORLD_SIZE");
  const bool one_host = place.local_size == place.size;
  place.address = one_host || place.rank == 0 || is_loopback(place.rendezvous_host)
                      ? place.rendezvous_host
                      : "";
  if (one_host && variables.has("LOCAL_WORLD_SIZE"))
    place.address = "127.0.0.1"; // all ranks are on this host, whatever MASTER_ADDR is
  return place;
}

ProcessTopology from_tf_config(const Variables& variables) {
  const auto config = parse_tf_config(variables.text("TF_CONFIG"));
  ProcessTopology place;
  place.source = "tf_config";
  place.cluster = config.cluster;
  place.role = config.role;
  place.role_index = config.index;
  const auto of = [&](const std::string& role) {
    const auto found = config.cluster.find(role);
    return found == config.cluster.end() ? std::vector<Endpoint>() : found->second;
  };
  auto group = of("chief");
  const int chiefs = static_cast<int>(group.size());
  const auto workers = of("worker");
  group.insert(group.end(), workers.begin(), workers.end());
  place.rendezvous_host = group[0].host;
  place.rendezvous_port = group[0].port;
  place.rank = config.index + (config.role == "worker" ? chiefs : 0);
  if (config.role != "worker" && config.role != "chief")
    group = of(config.role);
  if (group.empty()) { // an evaluator that is not listed in the cluster
    place.address = "";
    place.size = config.index + 1;
    return place;
  }
  place.size = static_cast<int>(group.size());
  place.address = group[static_cast<std::size_t>(place.rank)].host;
  place.local_size = 0;
  for (int rank = 0; rank < place.size; ++rank) {
    if (group[static_cast<std::size_t>(rank)].host != place.address)
      continue;
    place.local_rank += rank < place.rank ? 1 : 0;
    ++place.local_size;
  }
  return place;
}

/// Open MPI and MPICH give the same information under different variable names.
ProcessTopology from_mpi(const Variables& variables, const std::string& source,
                         const std::string& rank, const std::string& size,
                         const std::string& local_rank, const std::string& local_size,
                         const std::string& job) {
  ProcessTopology place;
  place.source = source;
  place.size = variables.number(size, 1, kMostRanks, rank);
  place.rank = variables.number(rank, 0, place.size - 1, size);
  place.role_index = place.rank;
  read_local(variables, place, local_rank, local_size);
  const bool one_host = place.local_size == place.size;
  if (one_host)
    stay_at_home(place, hash_of(variables.text(job)));
  else
    place.rendezvous_host = place.address = "";
  if (take_master(variables, place) && !one_host)
    place.address = place.rank == 0 ? place.rendezvous_host : "";
  return place;
}

ProcessTopology from_slurm(const Variables& variables) {
  ProcessTopology place;
  place.source = "slurm";
  const bool step = variables.has("SLURM_STEP_NUM_TASKS");
  place.size = variables.number(step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1, kMostRanks,
                                "SLURM_PROCID");
  place.rank = variables.number("SLURM_PROCID", 0, place.size - 1, "SLURM_NTASKS");
  place.role_index = place.rank;
  const char* list =
      variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  std::vector<std::string> nodes;
  try {
    nodes = expand_node_list(variables.text(list));
  } catch (const std::invalid_argument& error) {
    variables.refuse(list, std::string("must be a list of nodes: ") + error.what());
  }
  const auto node_count = static_cast<int>(nodes.size());
  const char* count =
      variables.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  if (variables.has(count)
      && variables.number(count, 1, static_cast<int>(kMostNodes), list) != node_count)
    variables.refuse(count, "contradicts " + std::string(list) + ", which has "
                                + std::to_string(node_count) + " nodes");
  const auto node =
      static_cast<std::size_t>(variables.number("SLURM_NODEID", 0, node_count - 1, "SLURM_PROCID"));
  place.local_rank = variables.number("SLURM_LOCALID", 0, place.rank, "SLURM_PROCID");
  const char* tasks = variables.has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE"
                                                                 : "SLURM_TASKS_PER_NODE";
  std::vector<int> counts(nodes.size(), (place.size + node_count - 1) / node_count);
  if (variables.has(tasks)) {
    try {
      counts = expand_task_counts(variables.text(tasks));
    } catch (const std::invalid_argument& error) {
      variables.refuse(tasks, std::string("must be counts of tasks: ") + error.what());
    }
  }
  if (node >= counts.size() || counts[node] <= place.local_rank)
    variables.refuse(tasks, "has no room for SLURM_LOCALID " + std::to_string(place.local_rank)
                                + " on node " + std::to_string(node));
  place.local_size = std::min(place.size, counts[node]);
  const auto job = hash_of(variables.text("SLURM_JOB_ID") + "." + variables.text("SLURM_STEP_ID"));
  stay_at_home(place, job);
  if (node_count > 1) {
    place.rendezvous_host = nodes[0];
    place.address = nodes[node];
  }
  take_master(variables, place);
  return place;
}

/// Returns whether srun started this process. The variables of the batch script look like rank 0.
bool in_slurm_step(const Variables& variables) {
  const auto step = variables.text("SLURM_STEP_ID");
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), id);
  return error == std::errc() && end == step.data() + step.size() && id < kFirstStepAside
         && variables.has("SLURM_PROCID");
}

} // namespace

ProcessTopology topology_from(const Environment& environment, const ReadFile& read_file,
                              const std::string& source) {
  const Variables variables(environment);
  const auto either = [&](const char* a, const char* b) {
    return variables.has(a) || variables.has(b);
  };
  struct Source {
    std::string name;
    bool there;
    std::function<ProcessTopology()> read;
  };
  const Source sources[] = {
      {"hosts", either("TROUPE_HOSTS", "TROUPE_RANK"),
       [&] {
         if (!variables.has("TROUPE_HOSTS"))
           throw std::invalid_argument(
               "TROUPE_HOSTS is not set, but TROUPE_RANK is; set both, or unset both");
         return from_hosts(variables, read_file);
       }},
      {"torchrun", either("RANK", "WORLD_SIZE"), [&] { return from_torchrun(variables); }},
      {"tf_config", variables.has("TF_CONFIG"), [&] { return from_tf_config(variables); }},
      {"open_mpi", either("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
       [&] {
         return from_mpi(variables, "open_mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                         variables.has("PMIX_NAMESPACE") ? "PMIX_NAMESPACE"
                                                         : "OMPI_MCA_ess_base_jobid");
       }},
      {"mpich", either("PMI_RANK", "PMI_SIZE"),
       [&] {
         return from_mpi(variables, "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                         "MPI_LOCALNRANKS", variables.has("PMI_PORT") ? "PMI_PORT" : "PMI_JOBID");
       }},
      {"slurm", in_slurm_step(variables), [&] { return from_slurm(variables); }},
      {"single", true, [] { return ProcessTopology(); }},
  };
  std::optional<ProcessTopology> chosen;
  for (const auto& entry : sources) {
    if (source == "auto" ? !entry.there || (chosen && entry.name == "slurm") : entry.name != source)
      continue;
    if (!entry.there)
      throw std::invalid_argument("place: the source \"" + source
                                  + "\" has set none of its variables here; start the program with "
                                    "it, or choose \"auto\"");
    if (chosen && entry.name == "single")
      continue;
    const auto place = entry.read();
    if (!chosen)
      chosen = place;
    else if (chosen->role != "ps" && chosen->role != "evaluator" && place.role != "ps"
             && place.role != "evaluator"
             && (chosen->rank != place.rank || chosen->size != place.size))
      throw std::invalid_argument(
          "place: " + chosen->source + " says rank " + std::to_string(chosen->rank) + " of "
          + std::to_string(chosen->size) + ", " + place.source + " says rank "
          + std::to_string(place.rank) + " of " + std::to_string(place.size)
          + "; unset the variables of one, or name the source to use");
  }
  if (!chosen)
    throw std::invalid_argument("place: there is no source \"" + source
                                + "\"; choose auto, hosts, torchrun, tf_config, open_mpi, mpich, "
                                  "slurm or single");
  if (variables.has("TROUPE_ADDRESS")) {
    chosen->address = variables.text("TROUPE_ADDRESS");
    try {
      if (chosen->address.find(':') == std::string::npos)
        parse_endpoint(chosen->address, true);
    } catch (const std::invalid_argument& error) {
      variables.refuse("TROUPE_ADDRESS", std::string("must be a host: ") + error.what());
    }
  }
  chosen->keys = variables.text("TROUPE_KEYS");
  chosen->trusted_network = variables.number("TROUPE_TRUSTED_NETWORK", 0, 1, 0) == 1;
  return *chosen;
}

ProcessTopology topology_of_this_process(const std::string& source) {
  return topology_from(
      [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
      },
      [](const std::string& path) {
        std::ifstream file(path);
        std::ostringstream text;
        if (!file || !(text << file.rdbuf()))
          throw std::runtime_error("cannot read " + path);
        return text.str();
      },
      source);
}

} // namespace troupe::collectives
