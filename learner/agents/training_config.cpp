#include "learner/agents/training_config.hpp"

namespace troupe::learner {

LearningRateSchedule TrainingConfig::LearningRate::made() const {
  return {.shape = schedule == "linear"   ? ScheduleShape::polynomial
                   : schedule == "cosine" ? ScheduleShape::cosine
                                          : ScheduleShape::constant,
          .warmup_steps = warmup_updates,
          .total_steps = updates,
          .final_fraction = final_fraction};
}

void TrainingConfig::add_members(Members& members) {
  members.insert(members.end(), {{"learning_rate.schedule", &learning_rate.schedule},
                                 {"learning_rate.updates", &learning_rate.updates},
                                 {"learning_rate.final_fraction", &learning_rate.final_fraction},
                                 {"learning_rate.warmup_updates", &learning_rate.warmup_updates},
                                 {"resets.period", &resets.period},
                                 {"resets.last_update", &resets.last_update},
                                 {"resets.what", &resets.what},
                                 {"diagnostics_period", &diagnostics_period}});
}

std::vector<std::string> TrainingConfig::diagnoses() {
  return {"dormant_critic",       "dormant_policy",       "dormant_encoder",
          "feature_rank",         "action_saturation",    "gradient_norm_critic",
          "gradient_norm_policy", "gradient_norm_encoder"};
}

std::vector<OptionProblem> TrainingConfig::problems() const {
  std::vector<OptionProblem> found;
  const auto& rate = learning_rate;
  if (rate.schedule != "constant" && rate.updates <= rate.warmup_updates)
    found.push_back({"learning_rate.updates",
                     "is " + std::to_string(rate.updates)
                         + "; with learner.learning_rate.schedule \"" + rate.schedule
                         + "\" it must be more than learner.learning_rate.warmup_updates, "
                         + std::to_string(rate.warmup_updates) + ": it is where the decay ends"});
  if (rate.schedule == "constant" && (rate.updates > 0 || rate.final_fraction > 0))
    found.push_back({rate.updates > 0 ? "learning_rate.updates" : "learning_rate.final_fraction",
                     "is given, but learner.learning_rate.schedule is \"constant\"; leave it out, "
                     "or choose \"linear\" or \"cosine\""});
  if (resets.period == 0 && resets.last_update > 0)
    found.push_back({"resets.last_update", "is given, but learner.resets.period is 0, so there "
                                           "are no resets; give the period, or leave it out"});
  if (resets.last_update > 0 && resets.last_update < resets.period)
    found.push_back({"resets.last_update", "is " + std::to_string(resets.last_update)
                                               + "; it must be at least learner.resets.period, "
                                               + std::to_string(resets.period)
                                               + ", or no reset is ever made"});
  return found;
}

} // namespace troupe::learner
