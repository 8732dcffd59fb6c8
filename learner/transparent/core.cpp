#include "learner/transparent/core.hpp"

#include <unistd.h>

#include <bit>
#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "collectives/communicator.hpp"
#include "collectives/rendezvous/process_topology.hpp"
#include "learner/transparent/process.hpp"
#include "learner/transparent/process_rendezvous.hpp"

namespace troupe::learner::transparent {
namespace {

constexpr int kFailed = 1;
constexpr int kMistake = 2;

/// The state of the process, which cannot be passed to a preloaded library. It is never destroyed,
/// because the program's own destructors may still step and sample.
struct State {
  std::recursive_mutex mutex; // a closure may sample, and samplers shuffle
  std::unique_ptr<TransparentProcess> process;
  pid_t owner = 0; // forked children are not ranks
  bool inside = false;
};

State& state() {
  static State* const one = new State;
  return *one;
}

/// Ends this rank. Flushes the program's output first, so that the reason is the last line.
[[noreturn]] void give_up(const std::string& reason, int exit_code) {
  std::fflush(nullptr);
  const std::string who = state().process
                              ? "rank " + std::to_string(state().process->rank()) + " of "
                                    + std::to_string(state().process->size()) + ": "
                              : "";
  std::fprintf(stderr, "troupe transparent: %s%s\n", who.c_str(), reason.c_str());
  std::_Exit(exit_code);
}

/// Runs `ours(process)` if there are other ranks, otherwise `theirs()`. Collective failures end the
/// process; exceptions of LibTorch or of the program propagate to the program.
template <class Ours, class Theirs>
auto in_turn(const Ours& ours, const Theirs& theirs) {
  State& own = state();
  if (!own.process || own.owner != ::getpid())
    return theirs();
  const std::lock_guard lock(own.mutex);
  if (!own.process)
    return theirs();
  const bool before = std::exchange(own.inside, true);
  struct Restore {
    State& state;
    bool before;
    ~Restore() { state.inside = before; }
  } const restore{own, before};
  try {
    return ours(*own.process);
  } catch (const collectives::CollectiveError& error) {
    give_up(error.what(), kFailed);
  }
}

bool begin() {
  State& own = state();
  try {
    const Settings settings = read_settings(environment_variable);
    const std::string source = environment_variable("TROUPE_TRANSPARENT_PLACE");
    const auto place = collectives::topology_of_this_process(source.empty() ? "auto" : source);
    if (place.source == "single")
      std::fprintf(stderr,
                   "troupe transparent: does nothing, because no launcher gave this process a "
                   "rank; start it with `troupe transparent -n 4 -- program`\n");
    if (place.size == 1)
      return false;
    const auto meeting = std::make_shared<ProcessRendezvous>(place, settings);
    auto communicator = meeting->communicator();
    const auto another = [meeting, first = communicator.get()] { return meeting->another(*first); };
    own.process = std::make_unique<TransparentProcess>(std::move(communicator), another, settings);
    own.owner = ::getpid();
    return true;
  } catch (const std::invalid_argument& mistake) {
    give_up(mistake.what(), kMistake);
  } catch (const std::exception& failure) {
    give_up(failure.what(), kFailed);
  }
}

bool is_rank_0() {
  return state().process->rank() == 0;
}

void end(int exit_code) {
  State& own = state();
  if (!own.process || own.owner != ::getpid())
    return;
  const std::unique_lock lock(own.mutex, std::try_to_lock);
  const bool within = !lock.owns_lock() || own.inside;
  if (within || exit_code != 0) { // within: on another thread, or in a signal handler
    own.process->abort("the program of rank " + std::to_string(own.process->rank())
                       + " ended with exit code " + std::to_string(exit_code)
                       + (within ? " in the middle of a step" : ""));
    return;
  }
  in_turn([](TransparentProcess& process) { process.end(); }, [] {});
  own.process.reset();
}

at::Tensor step(void* optimizer, void* closure, const char* name, StepFunction original) {
  using Closure = TransparentProcess::Closure;
  using Original = at::Tensor (*)(torch::optim::Optimizer*, Closure*);
  auto* const mine = static_cast<torch::optim::Optimizer*>(optimizer);
  auto* const given = static_cast<Closure*>(closure);
  const auto call = [&](Closure replacement) {
    return std::bit_cast<Original>(original)(mine, &replacement);
  };
  return in_turn(
      [&](TransparentProcess& process) { return process.step(*mine, *given, name, call); },
      [&] { return call(*given); });
}

void group_added(void* optimizer) {
  auto& mine = *static_cast<torch::optim::Optimizer*>(optimizer);
  in_turn([&](TransparentProcess& process) { process.group_added(mine); }, [] {});
}

Indices next(void* sampler, std::size_t batch_size, NextFunction original) {
  const auto call = [&](std::size_t count) { return original(sampler, count); };
  return in_turn([&](TransparentProcess& process) { return process.next(batch_size, call); },
                 [&] { return call(batch_size); });
}

void reset(void* sampler, std::optional<std::size_t> size, ResetFunction original) {
  const auto call = [&] { original(sampler, size); };
  in_turn([&](TransparentProcess& process) { process.reset(call); }, call);
}

void buffer(const void* tensor) {
  in_turn(
      [&](TransparentProcess& process) { process.buffer(*static_cast<const at::Tensor*>(tensor)); },
      [] {});
}

void stream() {
  in_turn([](TransparentProcess& process) { process.stream(); }, [] {});
}

/// Does not take the lock, because it is called within steps while the generator's own lock is
/// held.
void seed(void* generator, std::uint64_t value, SeedFunction original) {
  const State& own = state();
  const bool shared = own.process && own.owner == ::getpid();
  original(generator, shared ? own.process->shifted(generator, value) : value);
}

} // namespace
} // namespace troupe::learner::transparent

extern "C" __attribute__((visibility("default"))) const troupe::learner::transparent::Core*
troupe_transparent_core() {
  using namespace troupe::learner::transparent;
  using Step = OpaqueTensor (*)(void*, void*, const char*, StepFunction);
  static const Core core{.version = Core::kVersion,
                         .begin = begin,
                         .is_rank_0 = is_rank_0,
                         .end = end,
                         .step = std::bit_cast<Step>(&step), // same calling convention
                         .group_added = group_added,
                         .next = next,
                         .reset = reset,
                         .buffer = buffer,
                         .stream = stream,
                         .seed = seed};
  return &core;
}
