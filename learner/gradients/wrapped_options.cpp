#include "learner/gradients/wrapped_options.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "learner/gradients/wrapped_optimizer.hpp"

namespace troupe::learner {

void check_norm_limit(double norm) {
  if (!(norm >= 0) || std::isinf(norm))
    throw std::invalid_argument("max_gradient_norm " + std::to_string(norm)
                                + " must be a finite number, at least 0; 0 switches clipping off");
}

void check_wrapped(const WrappedOptimizerOptions& options, std::size_t parameters,
                   std::size_t groups) {
  check_norm_limit(options.max_gradient_norm);
  check_compression(options.compression, options.operation);
  if (options.bucket_bytes < 0)
    throw std::invalid_argument("bucket_bytes " + std::to_string(options.bucket_bytes)
                                + " must be at least 1, or 0 to be tuned in the first steps");
  if (options.accumulate < 1)
    throw std::invalid_argument("accumulate " + std::to_string(options.accumulate)
                                + " must be at least 1 micro-batch");
  if (options.skip_not_finite < 0)
    throw std::invalid_argument("skip_not_finite " + std::to_string(options.skip_not_finite)
                                + " must be at least 0 steps in a row; 0 stops at the first");
  if (!options.names.empty() && options.names.size() != parameters)
    throw std::invalid_argument("names: " + std::to_string(options.names.size()) + " for "
                                + std::to_string(parameters)
                                + " parameters; give one for each, or none");
  if (parameters == 0)
    throw std::invalid_argument("wrap_optimizer: the optimizer has no parameters");
  const auto schedules = options.schedules.size();
  if (schedules > 1 && schedules != groups)
    throw std::invalid_argument("schedules: " + std::to_string(schedules) + " for "
                                + std::to_string(groups)
                                + " parameter groups; give none, one for all, or one for each");
  for (const auto& schedule : options.schedules)
    check_schedule(schedule);
}

void check_without_average(const WrappedOptimizerOptions& options) {
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw std::invalid_argument(
          std::string(option)
          + ": only for replicas that average their gradients; leave it out "
            "under this strategy");
  };
  refuse(options.operation != GradientOperation::mean, "operation");
  refuse(options.compression.kind != CompressionKind::none, "compression");
  refuse(options.shard_optimizer_state, "shard_optimizer_state");
  refuse(options.join_mean_over_all, "join_mean_over_all");
}

} // namespace troupe::learner
