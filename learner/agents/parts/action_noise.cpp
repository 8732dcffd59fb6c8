#include "learner/agents/parts/action_noise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/state_bytes.hpp"
#include "learner/acting/action_density.hpp"
#include "learner/agents/parts/parameter_noise.hpp"

namespace troupe::learner {
namespace {

class GaussianNoise : public ActionNoise {
public:
  GaussianNoise(const NoiseConfig& scale, std::int64_t action_size)
      : scale_(scale), held_(scale.hold, static_cast<std::size_t>(action_size)) {}

  void apply(const float*, const Exploration& exploration, std::span<float> actions) override {
    if (!held_.holds())
      return add_noise(scale_, exploration, actions);
    const double scale = scale_.at(exploration.steps);
    const std::size_t size = actions.size() / exploration.random.size();
    for (std::size_t row = 0; scale > 0 && row < exploration.random.size(); ++row) {
      std::span<const double> noise = held_.kept(exploration, row);
      if (noise.empty()) {
        const std::span<double> drawn = held_.renew(exploration, row);
        for (double& number : drawn)
          number = exploration.random[row]->normal();
        noise = drawn;
      }
      for (std::size_t i = 0; i < size; ++i) {
        float& action = actions[row * size + i];
        action = static_cast<float>(std::clamp(action + scale * noise[i], -1.0, 1.0));
      }
    }
  }

  /// If the noise decays to 0, actions have no density.
  bool has_density() const override { return !held_.holds() && scale_.end > 0; }
  void log_probability(const Exploration& exploration, std::span<const float> means,
                       std::span<const float> actions, std::span<double> out) const override {
    const double scale = scale_.at(exploration.steps);
    const std::size_t size = actions.size() / out.size();
    for (std::size_t row = 0; row < out.size(); ++row) {
      out[row] = 0;
      for (std::size_t i = row * size; i < (row + 1) * size; ++i)
        out[row] += log_clipped_normal(means[i], scale, actions[i]);
    }
  }

  void save_state(std::vector<std::byte>& out) const override { held_.save_state(out); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    return held_.load_state(in);
  }

private:
  Schedule scale_;
  HeldDraws held_;
};

/// The process x <- (1 - reversion) x + sqrt(1 - (1 - reversion)^2) n with standard normal n. Its
/// standard deviation approaches 1. It is multiplied by the schedule.
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
  if (kind != "gaussian" && scale.hold > 1)
    found.push_back({"noise_hold", "is " + std::to_string(scale.hold) + ", but " + agent
                                       + ".noise is \"" + kind
                                       + "\", which lasts for several steps anyway; leave it out, "
                                         "or choose noise: \"gaussian\""});
  return found;
}

std::unique_ptr<ActionNoise> make_action_noise(const ActionNoiseConfig& config,
                                               const Mlp& network) {
  if (config.kind == "gaussian")
    return std::make_unique<GaussianNoise>(config.scale, network.layer(network.size() - 1).outputs);
  if (config.kind == "ornstein_uhlenbeck")
    return std::make_unique<OrnsteinUhlenbeckNoise>(config.scale, config.reversion);
  if (config.kind == "parameters")
    return std::make_unique<ParameterNoise>(config.scale, network);
  throw std::invalid_argument("noise is \"" + config.kind
                              + "\"; it must be gaussian, ornstein_uhlenbeck or parameters");
}

} // namespace troupe::learner
