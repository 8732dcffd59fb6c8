#include "env/gym/biped.hpp"

namespace troupe::env::gym {

GymTaskInfo walker2d_v5() {
  return {"Walker2d-v5",
          with_common_options(biped_options("0.8,2", "-1,1"), "walker2d_v5.xml", "4"),
          [](const GymOptionValues& options, const Physics& physics) -> std::unique_ptr<GymTask> {
            return std::make_unique<Biped>(options, physics, std::nullopt);
          }};
}

} // namespace troupe::env::gym
