#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

enum class Level : std::uint8_t { good, warning, bad };

/// One line of `troupe doctor`.
struct Finding {
  std::string name;
  Level level = Level::good;
  std::string text;
  std::string change = {}; // what to do about it; empty where all is well
};

/// What this process may use and how fast it is.
struct Machine {
  int cores = 0;      // within affinity and control group
  int host_cores = 0; // of the host
  std::string features = {};
  std::string kernels = {}; // of networks: "avx512", "avx2", "baseline"
  std::string caster = {};  // "ray caster, AVX3 vectors"
  bool bfloat16 = false;
  double load = 0;              // running programs of the host, mean over a minute
  std::string omp_threads = {}; // OMP_NUM_THREADS
  double gigahertz = 0;         // of one core while it works
  std::string governor = {};    // of its clock; empty: not visible
  double copied_gib = 0;        // per second, by one thread
  std::int64_t memory_bytes = 0;
  std::int64_t unused_bytes = 0;
  std::string huge_pages = {};        // "always", "madvise", "never"; empty: not visible
  std::int64_t shared_bytes = 0;      // free in /dev/shm; -1: there is none
  std::int64_t descriptors = 0;       // that this process may open
  std::vector<std::string> gpus = {}; // names or numbers of the visible ones
  std::string no_gpu_training = {};   // why learners cannot use them; empty: they can
};

/// Takes a tenth of a second of processor time.
Machine measure_machine();

/// Pure: what is worth telling about it, and what to change.
std::vector<Finding> judge_machine(const Machine& machine);

} // namespace troupe::experiments::commands
