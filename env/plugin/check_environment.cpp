#include "env/plugin/check_environment.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/plugin/own_environments.hpp"
#include "env/plugin/rollout.hpp"

namespace troupe::env {

namespace {

using MakeChecked = std::function<std::unique_ptr<Environment>()>;

class Check {
public:
  Check(const MakeChecked& make, const CheckOptions& options) : make_(make), options_(options) {}

  std::vector<CheckFinding> run() {
    guarded("spec", [&] {
      spec_ = make_()->spec();
      usable_ = true;
      if (const std::string problem = spec_problem(spec_); !problem.empty()) {
        error("spec", problem);
        usable_ = false;
      }
    });
    if (!usable_) // the checks below need an environment that can be played
      return std::move(findings_);
    guarded("reset", [&] { check_reset(); });
    guarded("written", [&] { check_written(); });
    guarded("determinism", [&] { check_determinism(); });
    guarded("seed", [&] { check_seeds(); });
    guarded("actions", [&] { check_actions(); });
    guarded("episode end", [&] { check_end(); });
    guarded("save and load", [&] { check_saving(); });
    guarded("mistakes", [&] { check_mistakes(); });
    return std::move(findings_);
  }

private:
  template <typename Body>
  void guarded(const char* rule, const Body& body) {
    try {
      body();
    } catch (const std::exception& problem) {
      error(rule, std::string("threw: ") + problem.what());
    } catch (...) {
      error(rule, "threw something that is not a std::exception");
    }
  }
  void error(const char* rule, const std::string& text) { add(true, rule, text); }
  void warn(const char* rule, const std::string& text) { add(false, rule, text); }
  void add(bool is_error, const char* rule, std::string text) {
    for (char& c : text) // keeps it on one line
      c = c == '\n' || c == '\r' ? ' ' : c;
    findings_.push_back({is_error, rule, std::move(text)});
  }

  void check_reset() {
    const auto environment = make_();
    const Rollout rollout = play(*environment, options_.seed, options_.steps);
    const TimeStep& first = rollout.steps.front();
    if (first.step_type != StepType::first)
      error("reset", "reset() returns a step type that is not first");
    if (first.reward != 0 || first.discount != 1)
      error("reset", "reset() gives reward " + std::to_string(first.reward) + " and discount "
                         + std::to_string(first.discount) + "; they must be 0 and 1");
    if (!(environment->spec().action == spec_.action)
        || environment->spec().observations != spec_.observations)
      error("spec", "the spec differs in a second environment, or after a reset");
    const Rollout again = play(*environment, options_.seed + 1, 1); // reset within an episode
    if (again.steps.front().step_type != StepType::first)
      error("reset", "reset() within an episode does not begin a new one");
  }

  void check_written() {
    const Rollout zeros = play(*make_(), options_.seed, options_.steps, Acting::random);
    const Rollout ones =
        play(*make_(), options_.seed, options_.steps, Acting::random, std::byte{0xA5});
    const std::string where = zeros.difference(ones, spec_);
    if (where.starts_with("observation"))
      error("written", where + " is not written, or differs from run to run");
    for (std::size_t i = 0; i < zeros.steps.size(); ++i)
      check_values(zeros, i);
  }

  void check_values(const Rollout& rollout, std::size_t i) {
    const TimeStep& step = rollout.steps[i];
    if (reported_values_)
      return;
    const std::string at = " of step " + std::to_string(i);
    std::string problem;
    if (!std::isfinite(step.reward))
      problem = "the reward" + at + " is " + std::to_string(step.reward);
    if (!(step.discount >= 0 && step.discount <= 1))
      problem =
          "the discount" + at + " is " + std::to_string(step.discount) + "; it must be from 0 to 1";
    if (i > 0 && step.step_type == StepType::first)
      problem = "the step type" + at + " is first";
    if (step.step_type == StepType::mid && step.discount == 0)
      problem =
          "the discount" + at + " is 0 and the episode continues; 0 means that it is terminated";
    std::size_t offset = 0;
    for (const ArraySpec& array : spec_.observations) {
      const auto numbers = std::span(rollout.observations[i]).subspan(offset, array.bytes());
      if (const auto bad = first_not_finite(array, numbers))
        problem = "observation '" + array.name + "'[" + std::to_string(*bad) + "]" + at
                  + " is not finite";
      offset += array.bytes();
    }
    if (!problem.empty())
      error("values", problem);
    reported_values_ = !problem.empty();
  }

  void check_determinism() {
    const auto one = make_();
    const Rollout first = play(*one, options_.seed, options_.steps);
    const Rollout again = play(*one, options_.seed, options_.steps);
    if (const auto where = first.difference(again, spec_); !where.empty())
      error("determinism", where
                               + " differs when the same seed is played again in the same "
                                 "environment; reset() must reset all state");
    const auto a = make_();
    const auto b = make_();
    Rollout beside = play(*a, options_.seed, 0);
    Rollout other = play(*b, options_.seed + 17, 0);
    for (std::int64_t i = 0; i < options_.steps; ++i) {
      play_on(*a, options_.seed, 1, beside);
      play_on(*b, options_.seed + 17, 1, other);
    }
    if (const auto where = first.difference(beside, spec_); !where.empty())
      error("determinism", where
                               + " differs with the same seed in a new environment that is stepped "
                                 "in turns with another one; is there global state?");
  }

  void check_seeds() {
    const auto environment = make_();
    const Rollout first = play(*environment, options_.seed, options_.steps);
    for (std::uint64_t i = 1; i <= 4; ++i) {
      // Uses the same actions, so that only the seed differs.
      Rollout other = play(*environment, options_.seed + i, 0);
      play_on(*environment, options_.seed, options_.steps, other);
      if (!first.difference(other, spec_).empty())
        return;
    }
    warn("seed", "five seeds give the same episode; is the seed of reset() used?");
  }

  void check_actions() {
    const auto environment = make_();
    const Rollout low = play(*environment, options_.seed, options_.steps, Acting::minimum);
    const Rollout high = play(*environment, options_.seed, options_.steps, Acting::maximum);
    const Rollout beyond = play(*environment, options_.seed, options_.steps, Acting::beyond);
    if (low.difference(high, spec_).empty())
      warn("actions", "the minimum and the maximum action do the same for "
                          + std::to_string(options_.steps) + " steps; are actions used?");
    if (const auto where = high.difference(beyond, spec_); !where.empty())
      error("actions", where
                           + " differs when actions are beyond their bounds; they must be "
                             "clipped to them");
  }

  void check_end() {
    const auto environment = make_();
    const std::int64_t limit = spec_.episode_steps;
    const std::int64_t most = limit > 0 ? limit : options_.episode_steps;
    if (most > options_.episode_steps) {
      warn("episode end", "the time limit of " + std::to_string(limit) + " steps was not reached");
      return;
    }
    const Rollout rollout = play(*environment, options_.seed, most);
    for (std::size_t i = 0; i < rollout.steps.size(); ++i)
      check_values(rollout, i);
    const auto taken = static_cast<std::int64_t>(rollout.steps.size()) - 1;
    if (!rollout.ended()) {
      if (limit > 0)
        error("episode end", "the episode continues after its " + std::to_string(limit)
                                 + " steps (spec.episode_steps)");
      else
        warn("episode end",
             "no episode ended in " + std::to_string(most) + " steps, and the spec names no limit");
      return;
    }
    if (taken < limit && rollout.steps.back().discount == 1)
      warn("episode end", "the episode ended after " + std::to_string(taken) + " of "
                              + std::to_string(limit)
                              + " steps with discount 1, which means truncated; a task that "
                                "terminates gives 0");
    if (!refuses([&] { take_step(*environment); }))
      error("episode end", "step() after the last step is not refused; it must throw "
                           "std::invalid_argument until reset()");
  }

  void check_saving() {
    if (!spec_.saves_state) {
      warn("save and load", "the spec says that no state is saved; a run that is resumed begins "
                            "new episodes");
      return;
    }
    const auto saved = make_();
    Rollout rollout = play(*saved, options_.seed, options_.steps / 2);
    std::vector<std::byte> state{std::byte{42}};
    saved->save_state(state);
    if (state.empty() || state.front() != std::byte{42}) {
      error("save and load", "save_state() does not append to the existing bytes");
      return;
    }
    state.push_back(std::byte{43});
    Rollout copy = rollout;
    play_on(*saved, options_.seed, options_.steps, rollout);
    const auto loaded = make_();
    const auto rest = loaded->load_state(std::span(state).subspan(1));
    if (rest.size() != 1 || rest[0] != std::byte{43})
      error("save and load", "load_state() does not return the rest of its input");
    play_on(*loaded, options_.seed, options_.steps, copy);
    if (const auto where = rollout.difference(copy, spec_); !where.empty())
      error("save and load", where
                                 + " differs after load_state() in a new environment; save_state() "
                                   "must save everything that the future depends on");
    const std::size_t size = state.size() - 2;
    if (size > 0 && !refuses([&] { loaded->load_state(std::span(state).subspan(1, size / 2)); }))
      error("save and load", "a state cut in half is not refused; load_state() must throw "
                             "std::invalid_argument");
  }

  void check_mistakes() {
    const auto environment = make_();
    std::vector<std::byte> observation(spec_.observation_bytes());
    std::vector<std::byte> long_buffer(observation.size() + 8);
    const auto action = action_for(spec_, options_.seed, 1, Acting::random);
    if (!refuses([&] { environment->step(action, observation); }))
      error("mistakes", "step() before the first reset() is not refused" + kHow);
    if (!refuses([&] { environment->reset(options_.seed, long_buffer); }))
      error("mistakes", "reset() into a buffer of the wrong size is not refused" + kHow);
    environment->reset(options_.seed, observation);
    if (!refuses([&] { environment->step(action, long_buffer); }))
      error("mistakes", "step() into a buffer of the wrong size is not refused" + kHow);
    environment->reset(options_.seed, observation);
    for (std::size_t i = 0; i < action.size(); ++i) {
      if (spec_.action.choices_of(i) == 0)
        continue;
      std::vector<double> between(action);
      between[i] = 0.5;
      if (!refuses([&] { environment->step(between, observation); }))
        error("mistakes", "a choice of 0.5 is not refused as number " + std::to_string(i)
                              + " of an action" + kHow);
      environment->reset(options_.seed, observation);
    }
    std::vector<double> wrong(action);
    wrong.push_back(0);
    if (!refuses([&] { environment->step(wrong, observation); }))
      error("mistakes", "an action with one number too many is not refused" + kHow);
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (const std::size_t i : std::set<std::size_t>{0, action.size() - 1}) {
        environment->reset(options_.seed, observation);
        wrong.assign(action.begin(), action.end());
        wrong[i] = bad;
        if (!refuses([&] { environment->step(wrong, observation); }))
          error("mistakes", "an action that is " + std::to_string(bad) + " is not refused" + kHow);
      }
    }
    play(*environment, options_.seed, 2); // it must still work after all of this
  }

  void take_step(Environment& environment) const {
    std::vector<std::byte> observation(spec_.observation_bytes());
    environment.step(action_for(spec_, options_.seed, 1, Acting::random), observation);
  }

  template <typename Body>
  static bool refuses(const Body& body) {
    try {
      body();
    } catch (const std::invalid_argument&) {
      return true;
    } catch (const std::exception&) {
      return false; // another kind of failure
    }
    return false;
  }

  const std::string kHow = "; it must throw std::invalid_argument";
  const MakeChecked& make_;
  CheckOptions options_;
  EnvironmentSpec spec_;
  bool usable_ = false;
  bool reported_values_ = false;
  std::vector<CheckFinding> findings_;
};

} // namespace

std::vector<CheckFinding> check_environment(const MakeChecked& make, const CheckOptions& options) {
  return Check(make, options).run();
}

} // namespace troupe::env
