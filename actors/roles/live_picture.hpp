#pragma once

#include <string>

#include "actors/protocol/messages.pb.h"
#include "env/spec.hpp"

namespace troupe::learner {
class Collector;
}

namespace troupe::actors {

/// What one environment of a collector shows between two steps: its scene as the ray caster draws
/// it from `camera`, in colour and with all effects, or the newest frame that the agent got. That
/// is the answer, too, where there is no MuJoCo simulation. Of several cameras the first one's
/// picture is taken; of a game's board (more than three planes of zeros and ones) each plane gets a
/// colour. Throws std::invalid_argument if there is no such environment, or neither a simulation
/// nor a picture.
wire::LivePicture live_picture(learner::Collector& collector, const env::ArraySpec& frame,
                               const std::string& camera, const wire::PictureOrder& order);

} // namespace troupe::actors
