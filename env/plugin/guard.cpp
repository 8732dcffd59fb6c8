#include <cmath>
#include <limits>

#include "env/checks.hpp"
#include "env/plugin/own_environments.hpp"
#include "env/state_bytes.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

namespace {

constexpr std::size_t kLargestObservation = std::size_t{1} << 30; // bytes
constexpr std::size_t kMostActions = 1 << 20;

class Guard final : public Wrapper {
private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(origin_ + ": " + what);
  }

  /// Rethrows an exception from the call as one of this program's types.
  template <typename Call>
  auto protect(const char* call, const Call& body) const {
    try {
      return body();
    } catch (const std::invalid_argument& problem) {
      throw std::invalid_argument(origin_ + ": " + problem.what());
    } catch (const std::exception& problem) {
      fail(std::string(call) + " threw: " + problem.what());
    } catch (...) {
      fail(std::string(call) + " threw something that is not a std::exception");
    }
  }

public:
  Guard(std::unique_ptr<Environment> wrapped, std::string origin)
      : Wrapper(std::move(wrapped)), origin_(std::move(origin)), action_(spec_.action.size()) {
    if (const std::string problem = spec_problem(spec_); !problem.empty())
      throw std::invalid_argument(origin_ + ": " + problem);
  }

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    check_observation_buffer(spec_, observation);
    running_ = false;
    const TimeStep result = protect("reset()", [&] { return inner().reset(seed, observation); });
    if (result.step_type != StepType::first)
      fail("reset() returned a step that is not the first");
    check_observation("reset()", observation);
    running_ = true;
    return {};
  }

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    protect("step()", [&] { check_step(spec_, running_, action, observation, action_); });
    running_ = false; // until this step has succeeded
    const TimeStep result = protect("step()", [&] { return inner().step(action_, observation); });
    if (result.step_type != StepType::mid && result.step_type != StepType::last)
      fail("step() returned a step that is neither mid nor last");
    if (!std::isfinite(result.reward))
      fail("step() returned the reward " + std::to_string(result.reward) + ", which is not finite");
    if (!(result.discount >= 0 && result.discount <= 1))
      fail("step() returned the discount " + std::to_string(result.discount)
           + ", which is not from 0 to 1");
    check_observation("step()", observation);
    running_ = result.step_type == StepType::mid;
    return result;
  }

  void save_state(std::vector<std::byte>& out) const override {
    save_value(out, static_cast<std::uint8_t>(running_));
    protect("save_state()", [&] { Wrapper::save_state(out); });
  }

  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    running_ = false;
    std::uint8_t running = 0;
    load_value(in, running, "episode flag");
    const auto rest = protect("load_state()", [&] { return Wrapper::load_state(in); });
    if (rest.size() > in.size() || rest.data() + rest.size() != in.data() + in.size())
      fail("load_state() returned something other than the rest of its input");
    running_ = running != 0;
    return rest;
  }

private:
  void check_observation(const char* call, std::span<const std::byte> observation) const {
    for (std::size_t i = 0; i < spec_.observations.size(); ++i) {
      const ArraySpec& array = spec_.observations[i];
      if (first_not_finite(array, observation.subspan(spec_.observation_offset(i), array.bytes())))
        fail(std::string(call) + " returned an observation '" + array.name
             + "' that is not finite");
    }
  }

  std::string origin_;
  std::vector<double> action_; // clipped
  bool running_ = false;
};

std::string array_problem(const ArraySpec& array) {
  if (array.name.empty())
    return "an observation array has no name";
  if (array.type > ElementType::int64)
    return "observation '" + array.name + "' has an unknown element type";
  std::size_t elements = 1;
  for (const std::int64_t n : array.shape) {
    if (n < 1 || static_cast<std::size_t>(n) > kLargestObservation / elements)
      return "observation '" + array.name + "' has an axis of " + std::to_string(n)
             + "; axes must be at least 1 and an array at most 1 GiB";
    elements *= static_cast<std::size_t>(n);
  }
  return "";
}

} // namespace

std::string spec_problem(const EnvironmentSpec& spec) {
  if (spec.name.empty())
    return "its spec has no name";
  if (spec.observations.empty())
    return "its spec has no observations";
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    if (const std::string problem = array_problem(spec.observations[i]); !problem.empty())
      return problem;
    for (std::size_t k = 0; k < i; ++k)
      if (spec.observations[k].name == spec.observations[i].name)
        return "it has two observations '" + spec.observations[i].name + "'";
  }
  if (spec.observation_bytes() > kLargestObservation)
    return "an observation has " + std::to_string(spec.observation_bytes())
           + " bytes; it must have at most 1 GiB";
  if (spec.action.size() == 0 || spec.action.size() > kMostActions)
    return "its action has " + std::to_string(spec.action.size())
           + " dimensions; it must have from 1 to " + std::to_string(kMostActions);
  if (const std::string problem = problem_of(spec.action); !problem.empty())
    return problem;
  if (spec.episode_steps < 0)
    return "its episode_steps is " + std::to_string(spec.episode_steps)
           + "; it must be 0 (no limit) or above";
  if (spec.action_repeat < 1 || spec.frame_stack < 1)
    return "its action_repeat is " + std::to_string(spec.action_repeat) + " and its frame_stack "
           + std::to_string(spec.frame_stack) + "; both must be at least 1";
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    const ArraySpec& array = spec.observations[i];
    if (spec.frame_stack > 1 && spec.stacks(i)
        && (array.shape.empty() || array.shape[0] % spec.frame_stack != 0))
      return "observation '" + array.name + "' does not divide into frame_stack "
             + std::to_string(spec.frame_stack) + " frames along its first axis";
  }
  if (!(spec.control_timestep_seconds >= 0
        && spec.control_timestep_seconds < std::numeric_limits<double>::infinity()))
    return "its control_timestep_seconds is " + std::to_string(spec.control_timestep_seconds)
           + "; it must be 0 (none) or above";
  return "";
}

std::unique_ptr<Environment> guard(std::unique_ptr<Environment> environment,
                                   const std::string& origin) {
  try {
    return std::make_unique<Guard>(std::move(environment), origin);
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& problem) {
    throw std::runtime_error(origin + ": its spec() threw: " + problem.what());
  } catch (...) {
    throw std::runtime_error(origin + ": its spec() threw something that is not a std::exception");
  }
}

} // namespace troupe::env
