#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learner {

enum class ScheduleShape : std::uint8_t { constant, cosine, steps, polynomial, exponential };

/// The learning rate of a step, as a multiple of the optimizer's initial rate. It depends only on
/// the step number, so that a resumed run continues with the same rates.
struct LearningRateSchedule {
  ScheduleShape shape = ScheduleShape::constant;
  /// Multiplies the peak by the number of replicas. For runs whose batch per replica does not
  /// depend on that number (Goyal et al.).
  bool scale_by_replicas = false;

  std::int64_t warmup_steps = 0; // linear, from warmup_from to the peak
  double warmup_from = 0;        // multiple of the optimizer's initial rate

  std::int64_t total_steps = 0; // cosine, polynomial: including the warm-up
  double final_fraction = 0;    // cosine, polynomial: fraction of the peak, from total_steps on
  double power = 1;             // polynomial: exponent; 1 is linear

  /// steps: the numbers of the steps at which the rate is multiplied by `decay`.
  std::vector<std::int64_t> milestones = {};
  double decay = 0.1; // steps, exponential: factor
  /// exponential: the rate is multiplied by `decay` every `decay_steps` steps after the warm-up.
  std::int64_t decay_steps = 0;

  /// Whether the rate differs between steps.
  bool changes() const { return shape != ScheduleShape::constant || warmup_steps > 0; }
  /// The multiple at step `step`, counted from 0. Throws std::invalid_argument if it is negative.
  double multiple(std::int64_t step, int replicas) const;
};

/// Throws std::invalid_argument naming the invalid field.
void check_schedule(const LearningRateSchedule& schedule);

} // namespace troupe::learner
