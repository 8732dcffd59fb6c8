#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/rendezvous/cluster_spec.hpp"

namespace troupe::collectives {

/// This process's position among the processes that train together.
struct ProcessTopology {
  int rank = 0; // of the chief and the workers, chief first; of a ps or evaluator within its role
  int size = 1;
  int local_rank = 0; // on this host
  int local_size = 1;
  int node = 0; // -1, and nodes 0, if the launcher does not say
  int nodes = 1;
  std::string rendezvous_host = "127.0.0.1"; // of rank 0; "" if not described
  int rendezvous_port = 0;                   // 0 if not described
  std::string rendezvous_file = {};          // of a RendezvousFile, instead of host and port
  bool rendezvous_served = false;            // by the launcher: rank 0 connects like the others
  int attempt = 0; // of the launcher to run all of it; its rendezvous stays the same
  std::string address = "127.0.0.1"; // of this process, for the others; "": not described
  std::string keys = {};             // folder of the deployment's keys (TROUPE_KEYS); "" if none
  bool trusted_network = false;      // TROUPE_TRUSTED_NETWORK: the user states that it is
  std::string role = "worker";       // "worker", "chief", "ps", "evaluator"
  int role_index = 0;
  std::map<std::string, std::vector<Endpoint>> cluster; // by role; TF_CONFIG alone
  std::string source = "single"; // "hosts", "torchrun", "tf_config", "open_mpi", "mpich", "slurm"
};

/// The value of a variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The contents of a file. May throw.
using ReadFile = std::function<std::string(const std::string& path)>;

/// Decides from the first of these that is there, or from the one that `source` names:
///   hosts      TROUPE_HOSTS, a file of parse_host_file(), and TROUPE_RANK
///   torchrun   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
///   tf_config  TF_CONFIG
///   open_mpi   OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE
///   mpich      PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
///   slurm      SLURM_PROCID, …, within a step that srun started
///   single     a process alone
/// TROUPE_RENDEZVOUS, a file, replaces torchrun's MASTER_ADDR and MASTER_PORT on one host.
/// MASTER_ADDR and MASTER_PORT also give the rendezvous under MPI and Slurm, TROUPE_ADDRESS the
/// address of this process, TROUPE_KEYS and TROUPE_TRUSTED_NETWORK what keeps strangers out. Throws
/// std::invalid_argument with variable, value, rule and way out for what is half set, out of range,
/// or said differently by two of the first five; Slurm's variables may differ, for launchers run
/// inside its steps.
ProcessTopology topology_from(const Environment& environment, const ReadFile& read_file,
                              const std::string& source = "auto");

/// The same from the environment and files of this process.
ProcessTopology topology_of_this_process(const std::string& source = "auto");

/// "127.…", "localhost", "::1".
inline bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

} // namespace troupe::collectives
