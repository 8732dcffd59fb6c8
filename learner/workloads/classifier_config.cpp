#include <cmath>
#include <sstream>
#include <stdexcept>

#include "learner/nn/kernels/precision.hpp"
#include "learner/workloads/classifier.hpp"
#include "learner/workloads/classifier_network.hpp"

namespace troupe::learner {
namespace {

template <class Value>
void require(bool held, const std::string& field, const Value& value, const std::string& rule) {
  if (held)
    return;
  std::ostringstream text;
  text << field << ' ' << value << ' ' << rule;
  throw std::invalid_argument(text.str());
}

void positive(const std::string& field, double value, const std::string& about = "") {
  require(value > 0 && std::isfinite(value), field, value, "must be above 0" + about);
}

void at_least_0(const std::string& field, double value, const std::string& about = "") {
  require(value >= 0 && std::isfinite(value), field, value, "must be at least 0" + about);
}

void fraction(const std::string& field, double value) {
  require(value >= 0 && value < 1, field, value, "must lie in [0, 1)");
}

void check_spec(const ClassifierSpec& spec) {
  require(spec.classes >= 2, "classes", spec.classes, "must be at least 2");
  require(spec.features >= 0, "features", spec.features, "must be the number of columns");
  if (spec.features == 0) {
    require(spec.channels >= 1, "channels", spec.channels, "must be at least 1");
    require(spec.height >= 1, "height", spec.height, "must be at least 1 pixel");
    require(spec.width >= 1, "width", spec.width, "must be at least 1 pixel");
  }
  require(spec.steps_per_epoch >= 1, "steps_per_epoch", spec.steps_per_epoch,
          "must be at least 1; it defines the epochs of the schedule");
}

} // namespace

void check(const ClassifierConfig& config, const ClassifierSpec& spec) {
  check_spec(spec);
  for (const auto size : config.layers)
    require(size >= 1, "layers", size, "must be at least 1 unit each");
  at_least_0("auxiliary_weight", config.auxiliary_weight, "; 0: no auxiliary head");
  fraction("dropout", config.dropout);
  fraction("label_smoothing", config.label_smoothing);
  check_model(config, spec);
  require(config.batch_size >= 1, "batch_size", config.batch_size, "must be at least 1 row");
  positive("epochs", config.epochs);
  require(config.optimizer == "sgd" || config.optimizer == "rmsprop" || config.optimizer == "adamw",
          "optimizer", '"' + config.optimizer + '"', "must be \"sgd\", \"rmsprop\" or \"adamw\"");
  positive("learning_rate", config.learning_rate);
  fraction("momentum", config.momentum);
  require(!config.nesterov || config.momentum > 0, "nesterov", "true", "needs a momentum above 0");
  fraction("rmsprop_decay", config.rmsprop_decay);
  positive("rmsprop_epsilon", config.rmsprop_epsilon);
  fraction("beta1", config.beta1);
  fraction("beta2", config.beta2);
  positive("epsilon", config.epsilon);
  at_least_0("weight_decay", config.weight_decay);
  at_least_0("gradient_norm", config.gradient_norm, "; 0: no clipping");
  require(config.schedule == "constant" || config.schedule == "cosine" || config.schedule == "steps"
              || config.schedule == "exponential",
          "schedule", '"' + config.schedule + '"',
          "must be \"constant\", \"cosine\", \"steps\" or \"exponential\"");
  require(config.warmup_epochs >= 0
              && (config.schedule != "cosine" || config.warmup_epochs < config.epochs),
          "warmup_epochs", config.warmup_epochs, "must be at least 0 and less than epochs");
  require(config.schedule != "steps" || !config.milestones.empty(), "milestones", "none",
          "must name at least one epoch at which the rate falls");
  for (const double epoch : config.milestones)
    positive("milestones", epoch);
  require(config.decay > 0 && config.decay <= 1, "decay", config.decay, "must lie in (0, 1]");
  positive("decay_epochs", config.decay_epochs);
  fraction("average_decay", config.average_decay);
  choose_precision(config.precision, at::kCPU, false, "precision");
}

} // namespace troupe::learner
