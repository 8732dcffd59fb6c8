#include "learner/agents/parts/action_noise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/state_bytes.hpp"
#include "learner/agents/parts/parameter_noise.hpp"

namespace troupe::learner {
namespace {

class GaussianNoise : public ActionNoise {
public:
  explicit GaussianNoise(const Schedule& scale) : scale_(scale) {}

  void apply(const float*, const Exploration& exploration, std::span<float> actions) override {
    add_noise(scale_, exploration, actions);
  }

private:
  Schedule scale_;
};

/// x <- (1 - reversion) x + sqrt(1 - (1 - reversion)^2) n with standard normal n: a process whose
/// standard deviation tends to 1. It is multiplied by the schedule.
class OrnsteinUhlenbeckNoise : public ActionNoise {
public:
  OrnsteinUhlenbeckNoise(const Schedule& scale, double reversion)
      : scale_(scale), kept_(1 - reversion), added_(std::sqrt(1 - kept_ * kept_)) {}

  void apply(const float*, const Exploration& exploration, std::span<float> actions) override {
    const double scale = scale_.at(exploration.steps);
    if (scale <= 0)
      return;
    processes_.resize(actions.size());
    const std::size_t size = actions.size() / exploration.random.size();
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const std::size_t row = i / size;
      const double before = exploration.begins(row) ? 0 : processes_[i];
      processes_[i] = kept_ * before + added_ * exploration.random[row]->normal();
      actions[i] = static_cast<float>(std::clamp(actions[i] + scale * processes_[i], -1.0, 1.0));
    }
  }

  void save_state(std::vector<std::byte>& out) const override {
    env::save_value(out, static_cast<std::uint64_t>(processes_.size()));
    for (const double process : processes_)
      env::save_value(out, process);
  }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    std::uint64_t count = 0;
    env::load_value(in, count, "number of noise processes");
    if (count > in.size() / sizeof(double))
      throw std::invalid_argument("the saved noise is truncated: " + std::to_string(count)
                                  + " processes in " + std::to_string(in.size()) + " bytes");
    processes_.resize(count);
    for (double& process : processes_)
      env::load_value(in, process, "noise process");
    return in;
  }

private:
  Schedule scale_;
  double kept_;
  double added_;
  std::vector<double> processes_; // [batch, action size]
};

} // namespace

void ActionNoiseConfig::add_members(Members& members) {
  members.push_back({"noise", &kind});
  members.push_back({"noise_reversion", &reversion});
  scale.add_members(members);
}

std::vector<OptionProblem> ActionNoiseConfig::problems(const std::string& agent) const {
  std::vector<OptionProblem> found = scale.problems(agent);
  if (kind != "ornstein_uhlenbeck" && reversion != ActionNoiseConfig{}.reversion)
    found.push_back({"noise_reversion", "is " + number_text(reversion) + ", but " + agent
                                            + ".noise is \"" + kind
                                            + "\"; leave it out, or choose noise: "
                                              "\"ornstein_uhlenbeck\""});
  return found;
}

std::unique_ptr<ActionNoise> make_action_noise(const ActionNoiseConfig& config,
                                               const Mlp& network) {
  if (config.kind == "gaussian")
    return std::make_unique<GaussianNoise>(config.scale);
  if (config.kind == "ornstein_uhlenbeck")
    return std::make_unique<OrnsteinUhlenbeckNoise>(config.scale, config.reversion);
  if (config.kind == "parameters")
    return std::make_unique<ParameterNoise>(config.scale, network);
  throw std::invalid_argument("noise is \"" + config.kind
                              + "\"; it must be gaussian, ornstein_uhlenbeck or parameters");
}

} // namespace troupe::learner
