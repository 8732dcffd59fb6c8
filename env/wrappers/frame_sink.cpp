#include "env/wrappers/frame_sink.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/wrappers/pixels.hpp"

namespace troupe::env {

FrameSink::FrameSink(std::unique_ptr<Environment> wrapped, const FrameSinkOptions& options,
                     std::function<void(const Frame&)> sink)
    : Wrapper(std::move(wrapped)), options_(options), sink_(std::move(sink)) {
  if (options_.every < 1)
    throw std::invalid_argument("a frame sink draws every step or every n-th; n is "
                                + std::to_string(options_.every) + " and must be at least 1");
  options_.pixels.grey = false;
  options_.pixels.cameras.clear();
  check_can_be_drawn(*this, options_.pixels);
}

void FrameSink::draw(StepType step_type) {
  if ((options_.episodes > 0 && episode_ >= options_.episodes) || step_ % options_.every != 0)
    return;
  if (!renderer_) {
    renderer_ = make_renderer(*physics(), options_.pixels, PixelLayout::channels_last);
    picture_.resize(renderer_->bytes());
  }
  renderer_->draw(picture_);
  sink_({.rgb = picture_, .episode = episode_, .step = step_, .step_type = step_type});
}

TimeStep FrameSink::reset(std::uint64_t seed, std::span<std::byte> observation) {
  const TimeStep result = inner().reset(seed, observation);
  ++episode_;
  step_ = 0;
  draw(result.step_type);
  return result;
}

TimeStep FrameSink::step(std::span<const double> action, std::span<std::byte> observation) {
  const TimeStep result = inner().step(action, observation);
  ++step_;
  draw(result.step_type);
  return result;
}

std::int64_t steps_per_frame(const EnvironmentSpec& spec, double frames_per_second) {
  const double step_seconds =
      spec.control_timestep_seconds * static_cast<double>(spec.action_repeat);
  if (!(step_seconds > 0))
    return 1;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(1 / (frames_per_second * step_seconds) - 1e-6)));
}

} // namespace troupe::env
