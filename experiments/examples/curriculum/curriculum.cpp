// An actor that joins a run: a curriculum. It receives the episodes that have ended and makes the
// task harder once the agent has learned it. The task, too, is part of this program.
//   curriculum curriculum.textproto
//   curriculum curriculum.textproto --without seed=2
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/run/run.hpp"
#include "env/plugin/plugin.hpp"
#include "env/state_bytes.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"

namespace {

using namespace troupe;

constexpr int kMostDigits = 12;

/// A lock with a code. The right button shows the next digit; a wrong one ends the episode. The
/// last digit gives a reward of 1.
class CodeLock final : public env::Environment {
public:
  explicit CodeLock(const env::Options& options) : digits_(options.integer("digits", kMostDigits)) {
    if (digits_ < 1 || digits_ > kMostDigits)
      throw std::invalid_argument("option digits is " + std::to_string(digits_)
                                  + "; it must be from 1 to " + std::to_string(kMostDigits));
    spec_.name = "code_lock";
    spec_.observations = {{"next", env::ElementType::float32, {kMostDigits}}}; // one-hot
    spec_.action = env::one_of(4);
    spec_.episode_steps = kMostDigits;
    spec_.control_timestep_seconds = 1;
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }

  env::TimeStep reset(std::uint64_t, std::span<std::byte> observation) override {
    entered_ = 0;
    show(observation);
    return {};
  }
  env::TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    const bool right = static_cast<std::int64_t>(action[0]) == (7 * entered_ + 3) % 4;
    const bool open = right && ++entered_ == digits_;
    show(observation);
    if (open || !right)
      return {env::StepType::last, open ? 1.0 : 0.0, 0};
    return {env::StepType::mid, 0, 1};
  }
  void save_state(std::vector<std::byte>& out) const override { env::save_value(out, entered_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    env::load_value(in, entered_, "digits");
    return in;
  }

private:
  void show(std::span<std::byte> observation) const {
    float next[kMostDigits] = {};
    next[std::min<std::int64_t>(entered_, kMostDigits - 1)] = 1;
    std::memcpy(observation.data(), next, sizeof next);
  }
  env::EnvironmentSpec spec_;
  std::int64_t digits_;
  std::int64_t entered_ = 0;
};

constexpr std::size_t kEpisodes = 30; // number of episodes at a level for measuring success
constexpr double kSuccess = 0.5;      // mean return required for a harder level

struct CurriculumState {
  std::vector<double> returns; // returns at the current level
};

/// Adds a digit when the mean return of the last episodes is high enough. The report contains the
/// current options, also after a resumption, so the actor needs no other state.
actors::CompanionActor::behavior_type
curriculum(actors::CompanionActor::stateful_pointer<CurriculumState> self) {
  return {[self](actors::report_atom, const actors::ProtoBytes& bytes) {
    const auto report = actors::decode<actors::wire::EpisodesReport>(bytes);
    actors::wire::TaskChange change;
    const std::string now = report.task_options().empty() ? "" : report.task_options(0);
    const int digits = std::stoi(now.substr(now.find('=') + 1));
    const auto require = [&](int wanted) {
      self->state.returns.clear();
      change.set_changes(true);
      change.add_options("digits=" + std::to_string(wanted));
    };
    auto& returns = self->state.returns;
    returns.insert(returns.end(), report.returns().begin(), report.returns().end());
    if (report.returns().empty() && report.environment_steps() == 0) { // a new run
      require(2);
    } else if (returns.size() >= kEpisodes) {
      double sum = 0;
      for (auto at = returns.end() - kEpisodes; at != returns.end(); ++at)
        sum += *at;
      if (sum / kEpisodes >= kSuccess && digits < kMostDigits)
        require(digits + 1);
    }
    return actors::encode(change);
  }};
}

} // namespace

TROUPE_ENVIRONMENTS({"code_lock", "A lock opens after the right buttons.",
                     troupe::env::make_own<CodeLock>});

int main(int argc, char** argv) try {
  if (argc < 2)
    throw std::invalid_argument("give an experiment file: curriculum curriculum.textproto");
  std::vector<std::string> words(argv + 2, argv + argc);
  const bool joins = std::erase(words, "--without") == 0;
  actors::RunConfig config = experiments::plan_run(experiments::load_experiment(argv[1], words));
  if (joins)
    config.companion = [](caf::actor_system& system) {
      return caf::actor_cast<caf::actor>(system.spawn(curriculum));
    };
  const actors::RunCallbacks callbacks{
      .log = [](const std::string& level, const std::string& text) {
        std::cerr << level << ": " << text << std::endl;
      }};
  const std::atomic<bool> stop = false;
  const actors::RunResult result = actors::run(config, "runs/curriculum", {}, {}, callbacks, stop);
  if (!result.error.empty())
    throw std::runtime_error(result.error);
  double sum = 0;
  for (const double one : result.evaluation.returns)
    sum += one;
  std::cout << "mean return of the whole code: "
            << sum / static_cast<double>(result.evaluation.returns.size()) << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << "curriculum: " << error.what() << std::endl;
  return 1;
}
