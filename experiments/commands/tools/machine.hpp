#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

enum class Level : std::uint8_t { good, warning, bad };

/// One line in the output of `troupe doctor`.
struct Finding {
  std::string name;
  Level level = Level::good;
  std::string text;
  std::string change = {}; // what to do about it; empty if all is well
};

/// The resources that this process may use, and their speed.
struct Machine {
  int cores = 0;      // allowed by affinity and control group
  int host_cores = 0; // cores of the host
  std::string features = {};
  std::string kernels = {}; // kernels for networks (KernelTable::name)
  std::string caster = {};  // "ray caster, AVX3 vectors"
  bool bfloat16 = false;
  double load = 0;              // running programs on the host, mean over one minute
  std::string omp_threads = {}; // value of OMP_NUM_THREADS
  double gigahertz = 0;         // clock rate of one busy core
  std::string governor = {};    // frequency governor; empty: not visible
  double copied_gib = 0;        // GiB per second, copied by one thread
  std::int64_t memory_bytes = 0;
  std::int64_t unused_bytes = 0;
  std::string huge_pages = {};        // "always", "madvise", "never"; empty: not visible
  std::int64_t shared_bytes = 0;      // bytes free in /dev/shm; -1: it does not exist
  std::int64_t descriptors = 0;       // limit of this process on open descriptors
  std::vector<std::string> gpus = {}; // names or numbers of the visible GPUs
  std::string no_gpu_training = {};   // why learners cannot use the GPUs; empty: they can
};

/// Takes 0.1 s of processor time.
Machine measure_machine();

/// Says what is worth knowing about the machine and what to change. A pure function.
std::vector<Finding> judge_machine(const Machine& machine);

} // namespace troupe::experiments::commands
