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

/// Keeps the renderer of the last scene for the next picture: making one with its textures takes
/// longer than drawing. The simulation must outlive it.
struct SceneRenderer {
  const env::Physics* of = nullptr;
  std::unique_ptr<env::Renderer> renderer;
};

/// Returns a picture of one environment between two steps: its scene as the ray caster draws it
/// from `camera`, in colour and with all effects, or the newest frame that the agent got. The frame
/// is also used if there is no MuJoCo simulation. With several cameras only the first one's picture
/// is returned. A game's board (more than three planes of 0 and 1 or of 0 and 255) gets one colour
/// per plane. Throws std::invalid_argument if there is no such environment, or neither a simulation
/// nor a picture.
wire::LivePicture live_picture(learner::Collector& collector, const env::ArraySpec& frame,
                               const std::string& camera, const wire::PictureOrder& order,
                               SceneRenderer& kept);

} // namespace troupe::actors
