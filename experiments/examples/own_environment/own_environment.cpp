// A custom environment: a cart on a line must be pushed to the middle and kept there.
#include <cmath>
#include <cstring>

#include "env/plugin/plugin.hpp"
#include "env/random.hpp"
#include "env/state_bytes.hpp"

namespace {

using namespace troupe::env;

class PushToMiddle final : public Environment {
public:
  explicit PushToMiddle(const Options& options) : friction_(options.number("friction", 0.5)) {
    spec_.name = "push_to_middle";
    spec_.observations = {{"position", ElementType::float64, {1}},
                          {"velocity", ElementType::float64, {1}}};
    spec_.action = {.minimum = {-1}, .maximum = {1}};
    spec_.episode_steps = 100;
    spec_.control_timestep_seconds = 0.1;
  }
  const EnvironmentSpec& spec() const override { return spec_; }

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    state_ = {.position = Random(seed).uniform(-1, 1)};
    observe(observation);
    return {};
  }

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    state_.velocity += 0.1 * (2 * action[0] - friction_ * state_.velocity);
    state_.position += 0.1 * state_.velocity;
    observe(observation);
    if (std::abs(state_.position) > 3) // off the line: the episode terminates
      return {StepType::last, 0, 0};
    const bool last = ++state_.steps == spec_.episode_steps; // truncated: the discount stays 1
    return {last ? StepType::last : StepType::mid, std::exp(-4 * std::abs(state_.position)), 1};
  }

  void save_state(std::vector<std::byte>& out) const override { save_value(out, state_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, state_, "cart");
    return in;
  }

private:
  void observe(std::span<std::byte> observation) const {
    std::memcpy(observation.data(), &state_, 2 * sizeof(double)); // position and velocity
  }
  struct State {
    double position = 0, velocity = 0;
    std::int64_t steps = 0;
  };
  EnvironmentSpec spec_;
  State state_;
  double friction_;
};

} // namespace

TROUPE_ENVIRONMENTS({"push_to_middle", "A cart is pushed to the middle of a line.",
                     make_own<PushToMiddle>});
