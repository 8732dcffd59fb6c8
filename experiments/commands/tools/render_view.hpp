#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/render/likeness.hpp"
#include "env/render/renderer.hpp"

namespace troupe::experiments::commands {

/// What a picture shows: colours; depth, from white (nearest) to black (farthest, or nothing); or
/// one colour for each object.
enum class Shows : std::uint8_t { colour, depth, segmentation };

struct ViewOptions {
  env::PixelOptions pixels;
  bool both = false; // OpenGL, ray caster and their difference, side by side
  Shows shows = Shows::colour;
  int gain = 4; // factor that amplifies the difference
};

/// The similarity of two pictures of the same state.
struct ViewLikeness {
  double similarity = 0;
  double difference = 0; // mean absolute difference, in levels
};

/// Pictures of a simulation by one or two renderers. Throws the exceptions of make_renderer().
class View {
public:
  View(env::Physics& physics, const ViewOptions& options);

  int height() const { return options_.pixels.height; }
  int width() const { return options_.pixels.width * (options_.both ? 3 : 1); }

  /// Draws the current state, [height, width, 3]. The span is valid until the next call.
  std::span<const std::uint8_t> draw();

  /// The likeness of the last two pictures that draw() made; nothing with one renderer.
  const std::optional<ViewLikeness>& likeness() const { return likeness_; }
  std::vector<std::string> descriptions() const; // descriptions of the renderers

private:
  void draw_one(env::Renderer& renderer, std::vector<std::uint8_t>& rgb);
  void draw_depth(env::Renderer& renderer, std::vector<std::uint8_t>& rgb);

  ViewOptions options_;
  std::vector<std::unique_ptr<env::Renderer>> renderers_;
  std::vector<std::vector<std::uint8_t>> pictures_; // one for each renderer, then their difference
  std::vector<std::uint8_t> beside_;                // all pictures side by side
  std::vector<float> depths_;
  std::vector<std::int32_t> objects_;
  std::vector<std::uint8_t> grey_;
  float nearest_ = 0; // range of depths in the first renderer's picture
  float farthest_ = 0;
  std::optional<ViewLikeness> likeness_;
};

} // namespace troupe::experiments::commands
