#include "learner/acting/transition_spec.hpp"

#include <stdexcept>

namespace troupe::learner {

replay::TransitionSpec transition_spec(const env::EnvironmentSpec& spec, int n_step,
                                       double discount) {
  if (spec.observations.empty())
    throw std::invalid_argument("environment " + spec.name + " has no observations");
  replay::TransitionSpec made;
  made.frame = spec.observations[0];
  made.vectors.assign(spec.observations.begin() + 1, spec.observations.end());
  for (const env::ArraySpec& vector : made.vectors)
    if (!made.frame.is_picture() || vector.type != env::ElementType::float32)
      throw std::invalid_argument(
          "environment.observations: beside '" + made.frame.name + "', "
          + env::element_name(made.frame.type) + ", environment " + spec.name + " shows '"
          + vector.name + "', " + env::element_name(vector.type)
          + "; agents take one array, or one picture and arrays of float32: name \"state\" for all "
            "numbers, or give several cameras as environment.pixels.cameras");
  made.stack = spec.frame_stack;
  made.frame.shape.at(0) /= spec.frame_stack;
  made.action_size = static_cast<int>(spec.action.size());
  if (!spec.action.is_continuous())
    made.action_choices = spec.action.choices;
  made.n_step = n_step;
  made.discount = discount;
  return made;
}

} // namespace troupe::learner
