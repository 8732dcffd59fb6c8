// A plug-in environment whose pixels cost nothing, to measure the transport of pixels
// (actor_inserts.sh).
#include <cstring>

#include "env/plugin/plugin.hpp"
#include "env/state_bytes.hpp"

namespace {

using namespace troupe::env;

class BlankPixels final : public Environment {
public:
  explicit BlankPixels(const Options& /*options*/) {
    spec_.name = "blank_pixels";
    spec_.observations = {{"pixels", ElementType::uint8, {3, 84, 84}}};
    spec_.action = {.minimum = {-1}, .maximum = {1}};
    spec_.episode_steps = 1000;
    spec_.control_timestep_seconds = 0.1;
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t /*seed*/, std::span<std::byte> observation) override {
    steps_ = 0;
    std::memset(observation.data(), 0, observation.size());
    return {};
  }
  TimeStep step(std::span<const double> /*action*/, std::span<std::byte> observation) override {
    std::memset(observation.data(), static_cast<int>(++steps_ % 256), observation.size());
    return {steps_ == spec_.episode_steps ? StepType::last : StepType::mid, 0, 1};
  }
  void save_state(std::vector<std::byte>& out) const override { save_value(out, steps_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, steps_, "steps");
    return in;
  }

private:
  EnvironmentSpec spec_;
  std::int64_t steps_ = 0;
};

} // namespace

TROUPE_ENVIRONMENTS({"blank_pixels", "Pixels that cost nothing.", make_own<BlankPixels>});
