#include "replay/chunks/spec.hpp"

namespace troupe::replay {

env::ArraySpec TransitionSpec::observation() const {
  env::ArraySpec whole = frame;
  if (!whole.shape.empty())
    whole.shape[0] *= stack;
  return whole;
}

} // namespace troupe::replay
