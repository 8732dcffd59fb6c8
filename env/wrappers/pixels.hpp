#pragma once

#include "env/render/renderer.hpp"
#include "env/wrappers/observation_wrapper.hpp"

namespace troupe::env {

/// Replaces the inner observations by pictures: "pixels" uint8 [cameras*channels, height, width],
/// the cameras in the order of the options. They are drawn once per step, directly into the
/// caller's buffer. The constructor checks sizes, cameras and whether the renderer works in this
/// process; the renderers themselves are made on the thread of the first reset().
class Pixels final : public ObservationWrapper {
public:
  /// Throws std::invalid_argument (size, camera, no physics behind `inner`) or std::runtime_error
  /// (OpenGL is needed and not available).
  Pixels(std::unique_ptr<Environment> inner, const PixelOptions& options);

private:
  void write(std::span<std::byte> observation) override;

  std::vector<PixelOptions> options_; // one per camera
  std::vector<std::unique_ptr<Renderer>> renderers_;
};

/// One copy of the options per camera: for each of `cameras`, or for `camera` if that is empty.
std::vector<PixelOptions> per_camera(const PixelOptions& options);

/// Throws what Pixels' constructor throws if `environment` cannot be drawn with these options.
void check_can_be_drawn(Environment& environment, const PixelOptions& options);

} // namespace troupe::env
