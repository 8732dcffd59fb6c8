#include <array>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/remote/remote_environment.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {

class RemoteEnvironment : public Environment {
public:
  explicit RemoteEnvironment(const RemoteOptions& options)
      : remote_(std::make_unique<RemoteEnvironments>(options)), spec_(remote_->spec()) {
    spec_.saves_state = remote_->can_save();
  }

  const EnvironmentSpec& spec() const override { return spec_; }

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    return play({.kind = Turn::Kind::reset, .seed = seed}, {}, observation);
  }

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    check_action(spec_, action);
    return play({.kind = Turn::Kind::step}, action, observation);
  }

  void save_state(std::vector<std::byte>& out) const override {
    const auto state = remote_->save(0);
    save_array(out, std::span(state));
  }

  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    remote_->load(0, load_bytes(in, "remote state"));
    return in;
  }

private:
  TimeStep play(const Turn& turn, std::span<const double> action,
                std::span<std::byte> observation) {
    check_observation_buffer(spec_, observation);
    std::array<TimeStep, 1> steps;
    const std::array<Turn, 1> turns{turn};
    if (remote_->play(turns, action, {.steps = steps, .observations = observation}) > 0)
      throw std::runtime_error("remote environment '" + spec_.name + "' at " + remote_->endpoint()
                               + ": " + remote_->failure(0));
    return steps[0];
  }

  std::unique_ptr<RemoteEnvironments> remote_;
  EnvironmentSpec spec_;
};

} // namespace

std::unique_ptr<Environment> make_remote(const RemoteOptions& options) {
  RemoteOptions one = options;
  one.environments = 1;
  return std::make_unique<RemoteEnvironment>(one);
}

} // namespace troupe::env
