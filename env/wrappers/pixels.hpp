#pragma once

#include "env/render/renderer.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// A picture instead of the inner observations: "pixels" uint8 [channels, height, width]. Drawn
/// once per step, straight into the caller's buffer. The constructor checks size, camera and that
/// there is an OpenGL; the renderer itself is made by the thread of the first reset().
class Pixels final : public Wrapper {
public:
  /// Throws std::invalid_argument (size, camera, no physics behind `inner`) or std::runtime_error
  /// (no OpenGL).
  Pixels(std::unique_ptr<Environment> inner, const PixelOptions& options);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  void draw(std::span<std::byte> observation);

  PixelOptions options_;
  std::vector<std::byte> inner_observation_;
  std::unique_ptr<Renderer> renderer_;
};

} // namespace troupe::env
