#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/rendezvous/process_topology.hpp"
#include "collectives/rendezvous/rendezvous.hpp"
#include "env/processes/start_program.hpp"
#include "experiments/commands/cluster/rank_processes.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/running/trainer.hpp"
#include "learner/transparent/settings.hpp"

namespace troupe::experiments::commands {
namespace {

using namespace learner::transparent;

constexpr int kMostRanks = 1024; // maximum on one host

struct TransparentFlags {
  int ranks = 0; // 0: not given
  std::string batch = "keep";
  std::string tail = "pad";
  std::string evaluation = "whole";
  std::string buffers = "rank0";
  std::string overlap = "on";
  std::string output = "rank0";
  std::string log_folder = "transparent_logs";
  std::string keys;
  bool trusted_network = false;
  Settings settings;
  std::vector<std::string> words;
};

int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::vector<std::string> common_environment(const TransparentFlags& flags, int threads) {
  auto lines = to_environment(flags.settings);
  const std::string before = environment_variable("LD_PRELOAD");
  lines.push_back("LD_PRELOAD=" + (before.empty() ? "" : before + ":")
                  + find_preload_library().string());
  if (environment_variable("OMP_NUM_THREADS").empty())
    lines.push_back("OMP_NUM_THREADS=" + std::to_string(std::max(1, threads)));
  if (!flags.keys.empty())
    lines.push_back("TROUPE_KEYS=" + flags.keys);
  if (flags.trusted_network)
    lines.push_back("TROUPE_TRUSTED_NETWORK=1");
  return lines;
}

/// Replaces this process with the program, as the rank that a launcher assigned.
[[noreturn]] void become_rank(const TransparentFlags& flags) {
  // The launcher may or may not have bound each rank to cores of its own.
  const auto share = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))
                     / collectives::topology_of_this_process().local_size;
  const auto environment = environment_with(common_environment(flags, std::min(cores(), share)));
  ::execve(flags.words[0].c_str(), exec_words(flags.words).data(), exec_words(environment).data());
  throw std::runtime_error(flags.words[0] + " does not start: " + std::strerror(errno));
}

int start_ranks(const TransparentFlags& flags) {
  RankProcessesOptions options;
  options.ranks = flags.ranks;
  options.output = flags.output == "all"     ? RankOutput::all
                   : flags.output == "files" ? RankOutput::files
                                             : RankOutput::rank0;
  options.log_folder = flags.log_folder;
  const collectives::RendezvousFile rendezvous;
  std::vector<RankProcesses::Start> starts;
  for (int rank = 0; rank < flags.ranks; ++rank) {
    auto lines = common_environment(flags, cores() / flags.ranks);
    const std::string size = std::to_string(flags.ranks);
    for (const auto& name : {"RANK=", "LOCAL_RANK="})
      lines.push_back(name + std::to_string(rank));
    for (const auto& name : {"WORLD_SIZE=", "LOCAL_WORLD_SIZE="})
      lines.push_back(name + size);
    lines.insert(lines.end(),
                 {"TROUPE_TRANSPARENT_PLACE=torchrun", "TROUPE_RENDEZVOUS=" + rendezvous.path(),
                  "GROUP_RANK=0", "GROUP_WORLD_SIZE=1", "TORCHELASTIC_USE_AGENT_STORE=False"});
    starts.push_back({flags.words, environment_with(lines)});
  }
  return RankProcesses(options).run(starts);
}

int run_transparent(TransparentFlags flags) {
  flags.settings.batch = flags.batch == "keep" ? Batch::keep : Batch::divide;
  flags.settings.tail = flags.tail == "pad" ? Tail::pad : Tail::drop;
  flags.settings.evaluation = flags.evaluation == "whole" ? learner::transparent::Evaluation::whole
                                                          : learner::transparent::Evaluation::part;
  flags.settings.buffers = flags.buffers == "rank0" ? Buffers::rank0 : Buffers::own;
  flags.settings.overlap = flags.overlap == "on";
  flags.settings.line_buffered = flags.output != "rank0";
  flags.words[0] = find_trainer(flags.words[0]).string();
  if (flags.ranks > 0 && environment_variable("SLURM_PROCID").empty()) {
    const auto place = collectives::topology_of_this_process();
    if (place.size > 1)
      throw std::invalid_argument("-n " + std::to_string(flags.ranks) + " must be left out under "
                                  + place.source + ", which has already started "
                                  + std::to_string(place.size) + " processes");
  }
  if (flags.ranks > 0)
    return start_ranks(flags);
  if (collectives::topology_of_this_process().source == "single")
    throw std::invalid_argument("-n is missing; give the number of processes, or run the command "
                                "under mpirun, srun or torchrun");
  become_rank(flags);
}

} // namespace

void add_transparent(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "transparent", "Trains one model with several processes of an unchanged LibTorch program");
  command->footer(
      "Example: troupe transparent -n 4 -- ./trainer --epochs 10\n"
      "         mpirun -np 2 troupe transparent -- ./trainer\n"
      "Parameters start as rank 0's, gradients are averaged in the optimizer's step, LibTorch's\n"
      "samplers give each rank its part of every epoch. What it cannot see (the program's own\n"
      "optimizers and samplers, Python) is in learner/transparent/README.md.");
  auto flags = std::make_shared<TransparentFlags>();
  command
      ->add_option("-n", flags->ranks, "number of processes; omit under mpirun, srun or torchrun")
      ->check(CLI::Range(1, kMostRanks));
  command
      ->add_option("--backend", flags->settings.backend,
                   "backend for gradients: shared_memory (default on one host), tcp, hierarchical "
                   "(default on several: shared memory inside a host, TCP between hosts)")
      ->check(CLI::IsMember({"shared_memory", "tcp", "hierarchical"}));
  command
      ->add_option("--keys", flags->keys,
                   "folder of `troupe keys cluster DIR`, on every host: keeps strangers out of the "
                   "gradients between hosts")
      ->envname("TROUPE_KEYS");
  command->add_flag("--trusted-network", flags->trusted_network,
                    "instead of --keys: no other host can reach the network between these "
                    "(TROUPE_TRUSTED_NETWORK=1)");
  command
      ->add_option("--batch", flags->batch,
                   "keep: the loader's batch size is that of each rank; divide: it is that of all "
                   "ranks together")
      ->check(CLI::IsMember({"keep", "divide"}))
      ->capture_default_str();
  command
      ->add_option(
          "--tail", flags->tail,
          "samples that do not divide by the ranks: pad repeats some of them, drop omits them")
      ->check(CLI::IsMember({"pad", "drop"}))
      ->capture_default_str();
  command
      ->add_option("--evaluation", flags->evaluation,
                   "loaders read without gradients (NoGradGuard): whole gives every rank all "
                   "samples, for exact accuracies; part gives each its part")
      ->check(CLI::IsMember({"whole", "part"}))
      ->capture_default_str();
  command
      ->add_option(
          "--buffers", flags->buffers,
          "buffers of modules (BatchNorm's running statistics): rank0: every step copies those of "
          "rank 0; own: each rank keeps the statistics of its samples")
      ->check(CLI::IsMember({"rank0", "own"}))
      ->capture_default_str();
  command
      ->add_option("--overlap", flags->overlap,
                   "on: gradients are sent during backward, and again where the program "
                   "changes them before its step; off: all are sent at the step")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command->add_flag("--rank0-writes", flags->settings.rank0_writes,
                    "only rank 0 writes its files; the other ranks write to unnamed ones");
  command
      ->add_option("--output", flags->output,
                   "standard output of rank0, of all with \"[rank] \" before each line, or in "
                   "files rank<r>.log")
      ->check(CLI::IsMember({"rank0", "all", "files"}))
      ->capture_default_str();
  command->add_option("--log-folder", flags->log_folder, "folder of --output files")
      ->capture_default_str();
  command
      ->add_option("--timeout", flags->settings.timeout_seconds,
                   "seconds to wait for other ranks before all fail")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  command
      ->add_option("--check-every", flags->settings.check_every,
                   "steps between comparisons of the ranks' parameters; 0: never")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("PROGRAM", flags->words, "and its arguments, after --")->required();
  command->callback([flags, &exit_code] { exit_code = run_transparent(*flags); });
}

} // namespace troupe::experiments::commands
