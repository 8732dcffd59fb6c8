#include "env/gym/gym_task.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::env::gym {

std::vector<GymOptionRule> with_common_options(std::vector<GymOptionRule> own, const char* xml_file,
                                               const char* frame_skip,
                                               const char* max_episode_steps) {
  own.push_back({"xml_file", GymOptionKind::text, xml_file,
                 "model: a file of Gym's models, or a path that begins with '/' or '.'"});
  own.push_back({"frame_skip", GymOptionKind::count, frame_skip, "physics steps per step"});
  own.push_back({"max_episode_steps", GymOptionKind::episode_steps, max_episode_steps,
                 "steps until an episode is truncated"});
  return own;
}

void require_sizes(const Physics& physics, int least_positions, int least_velocities) {
  const auto refuse = [&](const char* what, int has, int needs) {
    throw std::invalid_argument("model '" + physics.name() + "' has " + std::to_string(has) + " "
                                + what + "; the task reads " + std::to_string(needs)
                                + ": choose another xml_file");
  };
  if (physics.model().nq < least_positions)
    refuse("positions (nq)", static_cast<int>(physics.model().nq), least_positions);
  if (physics.model().nv < least_velocities)
    refuse("velocities (nv)", static_cast<int>(physics.model().nv), least_velocities);
}

void add_uniform_noise(std::span<double> values, double scale, Random& random) {
  for (double& value : values)
    value += random.uniform(-scale, scale);
}

void add_normal_noise(std::span<double> values, double standard_deviation, Random& random) {
  for (double& value : values)
    value += standard_deviation * random.normal();
}

double sum_of_squares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values)
    sum += value * value;
  return sum;
}

void GymObservationCursor::put(std::span<const double> values) {
  next_ = std::copy(values.begin(), values.end(), next_);
}

void GymObservationCursor::put_clipped(std::span<const double> values, double low, double high) {
  for (const double value : values)
    *next_++ = std::clamp(value, low, high);
}

void GymObservationCursor::put_difference(const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    *next_++ = a[i] - b[i];
}

ArraySpec gym_array(const char* name, std::size_t elements) {
  return {name, ElementType::float64, {static_cast<std::int64_t>(elements)}};
}

} // namespace troupe::env::gym
