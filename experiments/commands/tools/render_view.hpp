#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/render/likeness.hpp"
#include "env/render/renderer.hpp"

namespace troupe::experiments::commands {

/// What a picture shows: colours; depth (white is the nearest thing, black the farthest and
/// nothing); a colour for each object.
enum class Shows : std::uint8_t { colour, depth, segmentation };

struct ViewOptions {
  env::PixelOptions pixels;
  bool both = false; // OpenGL's picture, the ray caster's and their difference, side by side
  Shows shows = Shows::colour;
  int gain = 4; // of the difference
};

/// How alike the two pictures of a state are.
struct ViewLikeness {
  double similarity = 0;
  double difference = 0; // mean absolute, in levels
};

/// Pictures of a simulation by one renderer or two. Throws what make_renderer() throws.
class View {
public:
  View(env::Physics& physics, const ViewOptions& options);

  int height() const { return options_.pixels.height; }
  int width() const { return options_.pixels.width * (options_.both ? 3 : 1); }

  /// The present state, [height, width, 3]; valid until the next call.
  std::span<const std::uint8_t> draw();

  /// Of what draw() drew last, when there are two.
  const std::optional<ViewLikeness>& likeness() const { return likeness_; }
  std::vector<std::string> descriptions() const; // of the renderers

private:
  void draw_one(env::Renderer& renderer, std::vector<std::uint8_t>& rgb);
  void draw_depth(env::Renderer& renderer, std::vector<std::uint8_t>& rgb);

  ViewOptions options_;
  std::vector<std::unique_ptr<env::Renderer>> renderers_;
  std::vector<std::vector<std::uint8_t>> pictures_; // of each, then their difference
  std::vector<std::uint8_t> beside_;                // all of them
  std::vector<float> depths_;
  std::vector<std::int32_t> objects_;
  std::vector<std::uint8_t> grey_;
  float nearest_ = 0; // of the depths that the first renderer saw
  float farthest_ = 0;
  std::optional<ViewLikeness> likeness_;
};

} // namespace troupe::experiments::commands
