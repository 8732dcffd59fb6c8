#include "learner/acting/evaluation.hpp"

#include <vector>

namespace troupe::learner {

double play_episode(env::Environment& environment, Policy& policy, std::uint64_t seed,
                    const std::function<bool()>& after_step, ReturnPointRecorder* recorder) {
  std::vector<std::byte> observation(environment.spec().observation_bytes());
  std::vector<float> chosen(environment.spec().action.size());
  std::vector<std::byte> before;
  std::vector<double> action(chosen.size());
  std::vector<float> state(static_cast<std::size_t>(policy.state_size()));
  double total = 0;
  env::TimeStep step = environment.reset(seed, observation);
  while (step.step_type != env::StepType::last && (!after_step || after_step())) {
    policy.act(observation, 1, chosen, state);
    std::copy(chosen.begin(), chosen.end(), action.begin());
    if (recorder != nullptr)
      before = observation;
    step = environment.step(action, observation);
    if (recorder != nullptr)
      recorder->add(before, chosen, step.reward, step.discount);
    total += step.reward;
  }
  if (step.step_type == env::StepType::last && after_step)
    after_step();
  return total;
}

} // namespace troupe::learner
