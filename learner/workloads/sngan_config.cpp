#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "learner/nn/kernels/precision.hpp"
#include "learner/workloads/sngan.hpp"

namespace troupe::learner {

void check(const SnganConfig& config, const SnganSpec& spec) {
  const auto require = [](bool held, const char* field, auto value, const char* rule) {
    std::ostringstream text;
    text << field << ' ' << value << ' ' << rule;
    if (!held)
      throw std::invalid_argument(text.str());
  };
  require(spec.size == 32 || spec.size == 64 || spec.size == 128, "size", spec.size,
          "must be 32, 64 or 128 pixels");
  require(spec.classes >= 1, "classes", spec.classes, "must be at least 1");
  require(config.latent >= 1, "latent", config.latent, "must be at least 1");
  require(config.generator_channels >= 0, "generator_channels", config.generator_channels,
          "must be at least 0; 0: the papers'");
  require(config.critic_channels >= 0, "critic_channels", config.critic_channels,
          "must be at least 0; 0: the papers'");
  require(config.critic_steps >= 1, "critic_steps", config.critic_steps, "must be at least 1");
  require(config.batch_size >= 1, "batch_size", config.batch_size, "must be at least 1 row");
  for (const auto& [name, rate] :
       {std::pair("generator_learning_rate", config.generator_learning_rate),
        std::pair("critic_learning_rate", config.critic_learning_rate)})
    require(rate > 0 && std::isfinite(rate), name, rate, "must be above 0");
  for (const auto& [name, value] :
       {std::pair("beta1", config.beta1), std::pair("beta2", config.beta2),
        std::pair("average_decay", config.average_decay)})
    require(value >= 0 && value < 1, name, value, "must lie in [0, 1)");
  require(config.evaluation_samples >= 2, "evaluation_samples", config.evaluation_samples,
          "must be at least 2, to have a covariance");
  require(config.decay_steps >= 0, "decay_steps", config.decay_steps,
          "must be at least 0; 0 keeps the rates");
  choose_precision(config.precision, at::kCPU, false, "precision");
}

} // namespace troupe::learner
