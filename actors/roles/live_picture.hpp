#pragma once

#include <memory>
#include <string>

#include "actors/protocol/messages.pb.h"
#include "env/render/renderer.hpp"
#include "env/spec.hpp"

namespace troupe::learner {
class Collector;
}

namespace troupe::actors {

/// The renderer of the newest scene, for the next one: it takes longer to make, with its textures,
/// than to draw with. The simulation must outlive it.
struct SceneRenderer {
  const env::Physics* of = nullptr;
  std::unique_ptr<env::Renderer> renderer;
};

/// What one environment of a collector shows between two steps: its scene as the ray caster draws
/// it from `camera`, in colour and with all effects, or the newest frame that the agent got. That
/// is the answer, too, where there is no MuJoCo simulation. Of several cameras the first one's
/// picture is taken; of a game's board (more than three planes of zeros and ones) each plane gets a
/// colour. Throws std::invalid_argument if there is no such environment, or neither a simulation
/// nor a picture.
wire::LivePicture live_picture(learner::Collector& collector, const env::ArraySpec& frame,
                               const std::string& camera, const wire::PictureOrder& order,
                               SceneRenderer& kept);

} // namespace troupe::actors
