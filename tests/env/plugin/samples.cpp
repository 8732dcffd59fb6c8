// Plug-ins that fail in one way each. This file is compiled once per way; SAMPLE selects it.
#include <cstring>
#include <limits>
#include <stdexcept>

#include "env/plugin/plugin.hpp"
#include "env/state_bytes.hpp"

using namespace troupe::env;

namespace {

enum Way {
  good,
  other_version,
  other_compiler,
  other_sizes,
  no_magic,
  throws_in_constructor,
  throws_in_reset,
  throws_in_step,
  throws_a_number,
  throws_in_spec,
  bad_spec,
  bad_choices,
  bad_reward,
  bad_discount,
  bad_observation,
  null_object,
};
constexpr Way kWay = SAMPLE;

class Sample final : public Environment {
public:
  explicit Sample(const Options& options) : step_(options.number("step", 1)) {
    if (kWay == throws_in_constructor)
      throw std::runtime_error("no licence");
    spec_.name = "sample";
    spec_.observations = {{"count", ElementType::float64, {1}}};
    spec_.action = {.minimum = {-1}, .maximum = {kWay == bad_spec ? -1. : 1.}};
    if (kWay == bad_choices)
      spec_.action.choices = {3};
    spec_.episode_steps = 10;
  }
  const EnvironmentSpec& spec() const override {
    if (kWay == throws_in_spec)
      throw std::runtime_error("no spec");
    return spec_;
  }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    if (kWay == throws_in_reset)
      throw std::runtime_error("no reset");
    count_ = {static_cast<double>(seed % 100), 0};
    observe(observation);
    return {};
  }
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    if (kWay == throws_in_step && count_.steps == 2)
      throw std::runtime_error("no step");
    if (kWay == throws_a_number)
      throw 42;
    count_.value += step_ + action[0];
    ++count_.steps;
    observe(observation);
    if (kWay == bad_observation)
      std::memcpy(observation.data(), &kNan, sizeof kNan);
    const bool last = count_.steps == spec_.episode_steps;
    return {last ? StepType::last : StepType::mid, kWay == bad_reward ? kNan : count_.value,
            kWay == bad_discount ? 1.5 : 1};
  }
  void save_state(std::vector<std::byte>& out) const override { save_value(out, count_); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    load_value(in, count_, "count");
    return in;
  }

private:
  void observe(std::span<std::byte> observation) const {
    std::memcpy(observation.data(), &count_.value, sizeof count_.value);
  }
  struct Count {
    double value = 0;
    std::int64_t steps = 0;
  };
  EnvironmentSpec spec_;
  Count count_;
  double step_;
};

Environment* make_sample(const Options& options) {
  return kWay == null_object ? nullptr : make_own<Sample>(options);
}

constexpr PluginEnvironment kEnvironments[] = {{"sample", "Counts.", make_sample},
                                               {"another", "Counts too.", make_sample}};
constexpr PluginTable kTable = {
    kWay == no_magic ? 0 : kPluginMagic,
    kWay == other_version ? kPluginVersion + 1 : kPluginVersion,
    kWay == other_sizes ? kInterfaceBytes + 1 : kInterfaceBytes,
    kWay == other_compiler ? "another compiler" : kPluginFingerprint,
    kEnvironments,
    2,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const PluginTable* troupe_environments() {
  return &kTable;
}
