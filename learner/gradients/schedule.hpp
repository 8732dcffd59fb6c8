#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learner {

enum class ScheduleShape : std::uint8_t { constant, cosine, steps, polynomial, exponential };

/// The learning rate of a step, as a multiple of the one that the optimizer was made with. Pure, so
/// that a resumed run continues from the number of its step.
struct LearningRateSchedule {
  ScheduleShape shape = ScheduleShape::constant;
  /// The peak is the optimizer's rate times the number of replicas, for runs whose batch per
  /// replica does not depend on that number (Goyal et al.).
  bool scale_by_replicas = false;

  std::int64_t warmup_steps = 0; // from warmup_from to the peak, in a line
  double warmup_from = 0;        // multiple of the optimizer's rate

  std::int64_t total_steps = 0; // cosine, polynomial: the warm-up included
  double final_fraction = 0;    // cosine, polynomial: of the peak, from total_steps on
  double power = 1;             // polynomial; 1 is a line

  std::vector<std::int64_t> milestones = {}; // steps: from each of these on …
  double decay = 0.1;                        // … times this; exponential: the factor of each …
  std::int64_t decay_steps = 0;              // … so many steps after the warm-up, at once

  /// Whether steps have different rates.
  bool changes() const { return shape != ScheduleShape::constant || warmup_steps > 0; }
  /// Of step `step`, counted from 0. Throws std::invalid_argument for a negative step.
  double multiple(std::int64_t step, int replicas) const;
};

/// Throws std::invalid_argument naming the field.
void check_schedule(const LearningRateSchedule& schedule);

} // namespace troupe::learner
