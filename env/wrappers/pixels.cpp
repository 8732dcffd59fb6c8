#include "env/wrappers/pixels.hpp"

#include <stdexcept>

#include "env/wrappers/checks.hpp"

namespace troupe::env {

Pixels::Pixels(std::unique_ptr<Environment> wrapped, const PixelOptions& options)
    : Wrapper(std::move(wrapped)),
      options_(options),
      inner_observation_(spec_.observation_bytes()) {
  if (physics() == nullptr)
    throw std::invalid_argument("environment " + spec_.name
                                + " has no physics behind it, so it cannot be drawn");
  check_pixel_size(options_);
  find_camera(*physics(), options_.camera);
  gl_of_this_thread(options_.gl);
  spec_.observations = {
      {"pixels", ElementType::uint8, {options_.grey ? 1 : 3, options_.height, options_.width}}};
}

void Pixels::draw(std::span<std::byte> observation) {
  if (!renderer_)
    renderer_ = std::make_unique<Renderer>(*physics(), options_);
  renderer_->draw({reinterpret_cast<std::uint8_t*>(observation.data()), observation.size()});
}

TimeStep Pixels::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().reset(seed, inner_observation_);
  draw(observation);
  return result;
}

TimeStep Pixels::step(std::span<const double> action, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().step(action, inner_observation_);
  draw(observation);
  return result;
}

} // namespace troupe::env
