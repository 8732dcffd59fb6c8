#include "env/wrappers/pixels.hpp"

#include <stdexcept>

namespace troupe::env {

namespace {
constexpr std::size_t kMostCameras = 16;
}

std::vector<PixelOptions> per_camera(const PixelOptions& options) {
  if (options.cameras.empty())
    return {options};
  if (options.cameras.size() > kMostCameras)
    throw std::invalid_argument("pixels.cameras names " + std::to_string(options.cameras.size())
                                + " cameras; an observation has at most "
                                + std::to_string(kMostCameras));
  std::vector<PixelOptions> all;
  for (const std::string& camera : options.cameras) {
    all.push_back(options);
    all.back().cameras.clear();
    all.back().camera = camera;
  }
  return all;
}

void check_can_be_drawn(Environment& environment, const PixelOptions& options) {
  if (environment.physics() == nullptr)
    throw std::invalid_argument("environment " + environment.spec().name
                                + " has no physics, so it cannot be drawn");
  check_pixel_size(options);
  find_camera(*environment.physics(), options.camera);
  renderer_info(options);
}

Pixels::Pixels(std::unique_ptr<Environment> wrapped, const PixelOptions& options)
    : ObservationWrapper(std::move(wrapped)), options_(per_camera(options)) {
  for (const PixelOptions& one : options_)
    check_can_be_drawn(*this, one);
  const auto channels = static_cast<std::int64_t>(options_.size()) * (options.grey ? 1 : 3);
  spec_.goal = {};
  spec_.observations = {{"pixels", ElementType::uint8, {channels, options.height, options.width}}};
}

void Pixels::write(std::span<std::byte> observation) {
  while (renderers_.size() < options_.size())
    renderers_.push_back(make_renderer(*physics(), options_[renderers_.size()]));
  auto* out = reinterpret_cast<std::uint8_t*>(observation.data());
  for (const auto& renderer : renderers_) {
    renderer->draw({out, renderer->bytes()});
    out += renderer->bytes();
  }
}

} // namespace troupe::env
