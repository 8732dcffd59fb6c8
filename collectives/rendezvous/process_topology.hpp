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
  // Among the chief and the workers, chief first; a ps or evaluator is numbered within its role.
  int rank = 0;
  int size = 1;
  int local_rank = 0; // among the ranks on this host
  int local_size = 1;
  std::string rendezvous_host = "127.0.0.1"; // rank 0's host; "" if unknown
  int rendezvous_port = 0;                   // 0 if unknown
  std::string rendezvous_file = {};          // path of a RendezvousFile; replaces host and port
  bool rendezvous_served = false;    // the launcher serves it; rank 0 connects like the others
  int attempt = 0;                   // the launcher's restart count; the rendezvous stays the same
  std::string address = "127.0.0.1"; // where others reach this process; "" if unknown
  std::string keys = {};             // folder of the deployment's keys (TROUPE_KEYS); "" if none
  bool trusted_network = false;      // the user's statement (TROUPE_TRUSTED_NETWORK)
  std::string role = "worker";       // "worker", "chief", "ps", "evaluator"
  int role_index = 0;
  std::map<std::string, std::vector<Endpoint>> cluster; // by role; only with TF_CONFIG
  std::string source = "single"; // "hosts", "torchrun", "tf_config", "open_mpi", "mpich", "slurm"
};

/// Returns the value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// Returns the contents of a file. May throw.
using ReadFile = std::function<std::string(const std::string& path)>;

/// Determines the topology from the first of these sources that is present, or from the one that
/// `source` names:
///   hosts      TROUPE_HOSTS, a file as in parse_host_file(), and TROUPE_RANK
///   torchrun   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
///   tf_config  TF_CONFIG
///   open_mpi   OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE
///   mpich      PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
///   slurm      SLURM_PROCID, …, within a step that srun started
///   single     a single process
/// TROUPE_RENDEZVOUS, a file, replaces torchrun's MASTER_ADDR and MASTER_PORT on one host. Under
/// MPI and Slurm, MASTER_ADDR and MASTER_PORT also give the rendezvous. TROUPE_ADDRESS gives the
/// address of this process; TROUPE_KEYS and TROUPE_TRUSTED_NETWORK say how strangers are kept out.
///
/// Throws std::invalid_argument with the variable, value, rule and remedy if a description is
/// incomplete or out of range, or if two of the first five sources contradict each other. Slurm's
/// variables may differ, because launchers run inside its steps.
ProcessTopology topology_from(const Environment& environment, const ReadFile& read_file,
                              const std::string& source = "auto");

/// Does the same with the environment and files of this process.
ProcessTopology topology_of_this_process(const std::string& source = "auto");

} // namespace troupe::collectives
