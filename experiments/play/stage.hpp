#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "env/interaction/hand.hpp"
#include "experiments/play/command.hpp"

namespace troupe::experiments::play {

struct StageOptions {
  int width = 640;
  int height = 480;
  bool effects = true; // shadows, reflections and antialiasing
  int quality = 85;    // JPEG quality, 1 to 100
};

/// Camera, hand and pictures of a simulation that a person watches and touches. Use from one
/// thread.
class Stage {
public:
  explicit Stage(const StageOptions& options) : options_(options) {}

  /// Executes a command for the camera or the hand. Ignores other commands.
  void obey(const Command& command, env::Physics& physics);
  /// Call it before each control step, which takes `seconds`.
  void apply_forces(env::Physics& physics, double seconds);
  void release() { hand_.release(); }

  /// Returns a JPEG.
  std::string draw(env::Physics& physics);
  std::string camera_name(const env::Physics& physics) const;
  std::string held_body(const env::Physics& physics) const { return hand_.body_name(physics); }

private:
  void prepare(env::Physics& physics);

  StageOptions options_;
  env::Hand hand_;
  std::optional<env::OrbitCamera> camera_;
  std::shared_ptr<const env::CompiledModel> drawn_; // the model that caster_ draws
  std::optional<env::RayCaster> caster_;
  std::vector<std::uint8_t> pixels_;
};

} // namespace troupe::experiments::play
