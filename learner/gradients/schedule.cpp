#include "learner/gradients/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace troupe::learner {

double LearningRateSchedule::multiple(std::int64_t step, int replicas) const {
  if (step < 0)
    throw std::invalid_argument("schedule: step " + std::to_string(step)
                                + " must not be negative; the first is 0");
  const double peak = scale_by_replicas ? replicas : 1;
  if (step < warmup_steps)
    return warmup_from
           + (peak - warmup_from) * static_cast<double>(step) / static_cast<double>(warmup_steps);
  const double left = total_steps > warmup_steps
                          ? 1
                                - static_cast<double>(std::min(step, total_steps) - warmup_steps)
                                      / static_cast<double>(total_steps - warmup_steps)
                          : 0; // remaining fraction of the schedule, 1 to 0
  switch (shape) {
  case ScheduleShape::cosine:
    return peak
           * (final_fraction
              + (1 - final_fraction) * (1 + std::cos(std::numbers::pi * (1 - left))) / 2);
  case ScheduleShape::polynomial:
    return peak * (final_fraction + (1 - final_fraction) * std::pow(left, power));
  case ScheduleShape::steps:
    return peak
           * std::pow(decay, std::count_if(milestones.begin(), milestones.end(),
                                           [&](std::int64_t at) { return step >= at; }));
  case ScheduleShape::exponential:
    return peak * std::pow(decay, (step - warmup_steps) / decay_steps);
  case ScheduleShape::constant:
    break;
  }
  return peak;
}

void check_schedule(const LearningRateSchedule& schedule) {
  const auto require = [](bool held, const std::string& field, auto value,
                          const std::string& rule) {
    if (!held)
      throw std::invalid_argument("schedule." + field + " " + std::to_string(value) + " " + rule);
  };
  const bool ends =
      schedule.shape == ScheduleShape::cosine || schedule.shape == ScheduleShape::polynomial;
  require(schedule.warmup_steps >= 0, "warmup_steps", schedule.warmup_steps,
          "must not be negative; 0 is none");
  require(schedule.warmup_from >= 0 && std::isfinite(schedule.warmup_from), "warmup_from",
          schedule.warmup_from, "must be a finite multiple of the learning rate, at least 0");
  require(!ends || schedule.total_steps > schedule.warmup_steps, "total_steps",
          schedule.total_steps, "must be more than warmup_steps; it is where the decay ends");
  require(schedule.final_fraction >= 0 && schedule.final_fraction <= 1, "final_fraction",
          schedule.final_fraction, "must be from 0 to 1");
  require(schedule.power > 0 && std::isfinite(schedule.power), "power", schedule.power,
          "must be above 0; 1 is linear");
  require(schedule.decay > 0 && schedule.decay <= 1, "decay", schedule.decay,
          "must be above 0 and at most 1");
  require(schedule.shape != ScheduleShape::exponential || schedule.decay_steps > 0, "decay_steps",
          schedule.decay_steps, "must be above 0; it is how long a rate stays");
  require(schedule.shape != ScheduleShape::steps || !schedule.milestones.empty(), "milestones",
          schedule.milestones.size(), "of them: give at least one step at which the rate falls");
}

} // namespace troupe::learner
