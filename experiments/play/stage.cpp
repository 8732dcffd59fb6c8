#include "experiments/play/stage.hpp"

#include "experiments/report/picture.hpp"

namespace troupe::experiments::play {

/// A curriculum may have replaced the task, and with it the model and the numbers of its bodies.
void Stage::prepare(env::Physics& physics) {
  if (caster_ && drawn_ == physics.compiled())
    return;
  drawn_ = physics.compiled();
  hand_ = {};
  camera_.emplace(physics);
  caster_.emplace(env::caster_model(drawn_),
                  env::CastOptions{.height = options_.height,
                                   .width = options_.width,
                                   .camera = -1,
                                   .effects = options_.effects,
                                   .layout = env::PixelLayout::channels_last});
  pixels_.resize(caster_->bytes());
}

void Stage::obey(const Command& command, env::Physics& physics) {
  prepare(physics);
  const double ratio = static_cast<double>(options_.width) / options_.height;
  switch (command.kind) {
  case Command::Kind::next_camera:
    camera_->choose_next(physics);
    break;
  case Command::Kind::turn:
    camera_->turn(physics, command.x, command.y);
    break;
  case Command::Kind::shift:
    camera_->shift(physics, command.x, command.y);
    break;
  case Command::Kind::zoom:
    camera_->zoom(physics, command.y);
    break;
  case Command::Kind::grab:
    caster_->look_through(camera_->camera());
    hand_.grab(physics, *caster_, camera_->viewpoint(physics, ratio), command.x, command.y);
    break;
  case Command::Kind::pull:
    hand_.pull(camera_->viewpoint(physics, ratio), command.x, command.y);
    break;
  case Command::Kind::release:
    hand_.release();
    break;
  default:
    break;
  }
}

void Stage::apply_forces(env::Physics& physics, double seconds) {
  prepare(physics);
  hand_.apply(physics, seconds);
}

std::string Stage::draw(env::Physics& physics) {
  prepare(physics);
  camera_->follow(physics);
  caster_->look_through(camera_->camera());
  caster_->draw(physics.model(), physics.data(), pixels_);
  return encode_jpeg(options_.width, options_.height, pixels_, options_.quality);
}

std::string Stage::camera_name(const env::Physics& physics) const {
  return camera_ ? camera_->name(physics) : "";
}

} // namespace troupe::experiments::play
