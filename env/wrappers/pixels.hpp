#pragma once

#include "env/render/renderer.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// A picture instead of the inner observations: "pixels" uint8 [cameras*channels, height, width],
/// the cameras in the order of the options. Drawn once per step, straight into the caller's buffer.
/// The constructor checks size, cameras and that the renderer can draw here; the renderers
/// themselves are made by the thread of the first reset().
class Pixels final : public Wrapper {
public:
  /// Throws std::invalid_argument (size, camera, no physics behind `inner`) or std::runtime_error
  /// (no OpenGL where it draws).
  Pixels(std::unique_ptr<Environment> inner, const PixelOptions& options);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  void draw(std::span<std::byte> observation);

  std::vector<PixelOptions> options_; // one per camera
  std::vector<std::byte> inner_observation_;
  std::vector<std::unique_ptr<Renderer>> renderers_;
};

/// The options once per camera: `cameras`, or `camera` alone when it is empty.
std::vector<PixelOptions> per_camera(const PixelOptions& options);

/// Throws what Pixels' constructor throws when `environment` cannot be drawn with these options.
void check_can_be_drawn(Environment& environment, const PixelOptions& options);

} // namespace troupe::env
