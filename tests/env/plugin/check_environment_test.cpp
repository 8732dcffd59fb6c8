#include "env/plugin/check_environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "env/checks.hpp"
#include "env/make/make.hpp"
#include "env/random.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {

/// Each fault is off by default.
struct Faults {
  bool ignores_seed = false;
  bool ignores_actions = false;
  bool keeps_old_state = false; // reset() does not clear part of the state
  bool reads_past_bounds = false;
  bool leaves_bytes = false;
  bool never_ends = false;
  bool ends_early = false;
  bool forgets_steps = false; // in save_state()
  bool nan_late = false;
  bool takes_anything = false; // accepts any buffers and actions
  bool first_reward = false;
  bool zero_discount = false;
  bool throws_at_reset = false;
  bool rounds_choices = false;
};

class Faulty final : public Environment {
public:
  explicit Faulty(Faults faults) : faults_(faults) {
    spec_.name = "faulty";
    spec_.observations = {{"x", ElementType::float64, {2}}};
    spec_.action = {{-1}, {1}};
    spec_.episode_steps = 60;
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> out) override {
    if (faults_.throws_at_reset)
      throw std::runtime_error("no\nreset");
    check(out.size() == spec_.observation_bytes());
    if (!faults_.keeps_old_state)
      x_ = 0;
    x_ += Random(faults_.ignores_seed ? 1 : seed).uniform();
    steps_ = 0;
    running_ = true;
    write(out);
    return {StepType::first, faults_.first_reward ? 1. : 0., 1};
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> out) override {
    check(running_ && action.size() == 1 && std::isfinite(action[0])
          && out.size() == spec_.observation_bytes());
    const double a =
        faults_.reads_past_bounds || action.empty() ? action[0] : std::clamp(action[0], -1., 1.);
    x_ += faults_.ignores_actions ? .1 : .1 * a;
    ++steps_;
    write(out);
    running_ = faults_.never_ends || steps_ < (faults_.ends_early ? 50 : 60);
    return {running_ ? StepType::mid : StepType::last, x_,
            faults_.zero_discount && steps_ == 5 ? 0. : 1.};
  }
  void save_state(std::vector<std::byte>& out) const override {
    save_value(out, x_);
    save_value(out, running_);
    save_value(out, faults_.forgets_steps ? std::int64_t{0} : steps_);
  }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, x_, "x");
    load_value(in, running_, "running");
    load_value(in, steps_, "steps");
    return in;
  }

private:
  void check(bool good) const {
    if (!good && !faults_.takes_anything)
      throw std::invalid_argument("refused");
  }
  void write(std::span<std::byte> out) const {
    const double late = faults_.nan_late && steps_ == 55 ? std::numeric_limits<double>::quiet_NaN()
                                                         : static_cast<double>(steps_);
    const double values[] = {x_, late};
    std::memcpy(out.data(), values, std::min(out.size(), faults_.leaves_bytes ? 8 : sizeof values));
  }
  Faults faults_;
  EnvironmentSpec spec_;
  double x_ = 0;
  std::int64_t steps_ = 0;
  bool running_ = false;
};

std::vector<CheckFinding> check(Faults faults) {
  return check_environment([faults] { return std::make_unique<Faulty>(faults); });
}

/// Its position changes by the continuous number times the choice (0, 1 or 2), which is number
/// `choice` (0 or 1) of the action.
class Chooser final : public Environment {
public:
  Chooser(Faults faults, std::size_t choice, bool both = false) : faults_(faults), choice_(choice) {
    spec_.name = "chooser";
    spec_.observations = {{"x", ElementType::float64, {1}}};
    spec_.action = {.minimum = {-1, -1}, .maximum = {1, 1}, .choices = {0, 0}};
    for (const std::size_t i : {choice, both ? 1 - choice : choice}) {
      spec_.action.minimum[i] = 0;
      spec_.action.maximum[i] = 2;
      spec_.action.choices[i] = 3;
    }
    spec_.episode_steps = 60;
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> out) override {
    check_observation_buffer(spec_, out);
    state_ = {.x = Random(seed).uniform(), .steps = 0, .running = true};
    std::memcpy(out.data(), &state_.x, sizeof state_.x);
    return {};
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> out) override {
    check_observation_buffer(spec_, out);
    std::vector<double> taken(action.begin(), action.end());
    if (faults_.rounds_choices && taken.size() == 2 && std::isfinite(taken[choice_]))
      taken[choice_] = std::clamp(std::round(taken[choice_]), 0., 2.);
    check_action(spec_, taken);
    if (!state_.running)
      throw std::invalid_argument("refused");
    state_.x += std::clamp(taken[1 - choice_], -1., 1.) * taken[choice_];
    state_.running = ++state_.steps < 60;
    std::memcpy(out.data(), &state_.x, sizeof state_.x);
    return {state_.running ? StepType::mid : StepType::last, state_.x, 1};
  }
  void save_state(std::vector<std::byte>& out) const override { save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, state_, "state");
    return in;
  }

private:
  struct State {
    double x = 0;
    std::int64_t steps = 0;
    bool running = false;
  };
  Faults faults_;
  std::size_t choice_;
  EnvironmentSpec spec_;
  State state_;
};

bool has(const std::vector<CheckFinding>& findings, bool error, const std::string& rule,
         const std::string& part) {
  return std::any_of(findings.begin(), findings.end(), [&](const CheckFinding& finding) {
    return finding.error == error && finding.rule == rule
           && finding.text.find(part) != std::string::npos
           && finding.text.find('\n') == std::string::npos;
  });
}

} // namespace

TEST_CASE("A sound environment has no findings") {
  for (const CheckFinding& finding : check({}))
    FAIL_CHECK(finding.rule << ": " << finding.text);
}

TEST_CASE("Every fault is reported under its rule in one line") {
  CHECK(has(check({.ignores_seed = true}), false, "seed", "five seeds"));
  CHECK(has(check({.ignores_actions = true}), false, "actions", "are actions used?"));
  CHECK(has(check({.keeps_old_state = true}), true, "determinism", "'x'[0] of step 0"));
  CHECK(has(check({.reads_past_bounds = true}), true, "actions", "clipped"));
  CHECK(has(check({.leaves_bytes = true}), true, "written", "'x'[1] of step 0"));
  CHECK(has(check({.never_ends = true}), true, "episode end", "after its 60 steps"));
  CHECK(has(check({.ends_early = true}), false, "episode end", "50 of 60"));
  CHECK(has(check({.forgets_steps = true}), true, "save and load", "'x'[1]"));
  CHECK(has(check({.nan_late = true}), true, "values", "'x'[1] of step 55 is not finite"));
  CHECK(has(check({.takes_anything = true}), true, "mistakes", "before the first reset"));
  CHECK(has(check({.takes_anything = true}), true, "mistakes", "nan is not refused"));
  CHECK(has(check({.takes_anything = true}), true, "mistakes", "inf is not refused"));
  CHECK(has(check({.takes_anything = true}), true, "episode end", "after the last step"));
  CHECK(has(check({.first_reward = true}), true, "reset", "they must be 0 and 1"));
  CHECK(has(check({.zero_discount = true}), true, "values", "discount of step 5"));
  CHECK(has(check({.throws_at_reset = true}), true, "reset", "threw: no reset"));
  CHECK(has(check_environment([]() -> std::unique_ptr<Environment> {
              throw std::runtime_error("no such thing");
            }),
            true, "spec", "no such thing"));
}

TEST_CASE("An environment that accepts 0.5 for any of its choices is reported") {
  for (const bool both : {false, true})
    for (const std::size_t choice : {0U, 1U}) {
      CAPTURE(choice);
      CAPTURE(both);
      const auto play = [&](Faults faults) {
        return check_environment([&] { return std::make_unique<Chooser>(faults, choice, both); });
      };
      for (const CheckFinding& finding : play({}))
        FAIL_CHECK(finding.rule << ": " << finding.text);
      const auto findings = play({.rounds_choices = true});
      CHECK(findings.size() == 1);
      CHECK(has(findings, true, "mistakes",
                "a choice of 0.5 is not refused as number " + std::to_string(choice)));
    }
}

TEST_CASE("A sound environment obeys every rule when it is wrapped") {
  const auto findings = check_environment([] {
    return make_environment({.task = "pendulum_swingup",
                             .frame_stack = 3,
                             .action_repeat = 4,
                             .time_limit = 150,
                             .action_clip = .8,
                             .action_rescale = true,
                             .action_noise = .1,
                             .reward_scale = 2,
                             .reward_clip = 3,
                             .observations = {"orientation", "velocity"},
                             .randomization = {.masses = .2, .friction = .1}});
  });
  for (const CheckFinding& finding : findings)
    FAIL_CHECK(finding.rule << ": " << finding.text);
}
