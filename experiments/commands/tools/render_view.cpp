#include "experiments/commands/tools/render_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "env/split_mix.hpp"

namespace troupe::experiments::commands {

View::View(env::Physics& physics, const ViewOptions& options) : options_(options) {
  env::PixelOptions pixels = options_.pixels;
  pixels.cameras.clear();
  if (options_.both) {
    for (const auto kind : {env::RendererKind::opengl, env::RendererKind::caster}) {
      pixels.renderer = kind;
      renderers_.push_back(env::make_renderer(physics, pixels, env::PixelLayout::channels_last));
    }
  } else {
    renderers_.push_back(env::make_renderer(physics, pixels, env::PixelLayout::channels_last));
  }
  const std::size_t count = renderers_.front()->pixels();
  pictures_.assign(options_.both ? 3 : 1, std::vector<std::uint8_t>(3 * count));
  beside_.resize(options_.both ? 9 * count : 0);
  grey_.resize(options_.pixels.grey ? count : 0);
  depths_.resize(options_.shows == Shows::colour ? 0 : count);
  objects_.resize(options_.shows == Shows::colour ? 0 : 2 * count);
}

std::vector<std::string> View::descriptions() const {
  std::vector<std::string> all;
  for (const auto& renderer : renderers_) {
    all.push_back(renderer->description());
  }
  return all;
}

/// Grey by depth; both pictures use the depth range of the first one.
void View::draw_depth(env::Renderer& renderer, std::vector<std::uint8_t>& rgb) {
  renderer.draw_depth(depths_);
  renderer.draw_segmentation(objects_);
  if (&renderer == renderers_.front().get()) {
    nearest_ = std::numeric_limits<float>::max();
    farthest_ = 0;
    for (std::size_t i = 0; i < depths_.size(); ++i) {
      if (objects_[2 * i + 1] >= 0 && std::isfinite(depths_[i])) {
        nearest_ = std::min(nearest_, depths_[i]);
        farthest_ = std::max(farthest_, depths_[i]);
      }
    }
  }
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    // Use the inverse distance, so that a distant horizon does not compress the contrast of near
    // objects.
    const float place = (1 / depths_[i] - 1 / farthest_) / (1 / nearest_ - 1 / farthest_);
    const bool seen = objects_[2 * i + 1] >= 0 && std::isfinite(place);
    const auto level = static_cast<std::uint8_t>(seen ? std::clamp(place, 0.F, 1.F) * 225 + 30 : 0);
    std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, level);
  }
}

void View::draw_one(env::Renderer& renderer, std::vector<std::uint8_t>& rgb) {
  if (options_.shows == Shows::depth) {
    draw_depth(renderer, rgb);
  } else if (options_.shows == Shows::segmentation) {
    renderer.draw_segmentation(objects_);
    for (std::size_t i = 0; 2 * i < objects_.size(); ++i) {
      const auto object = static_cast<std::uint32_t>(objects_[2 * i]);
      const auto type = static_cast<std::uint32_t>(objects_[2 * i + 1]);
      const std::uint64_t bits = env::mix_bits((std::uint64_t{type} << 32) + object + 1);
      for (std::size_t c = 0; c < 3; ++c) {
        rgb[3 * i + c] =
            objects_[2 * i + 1] < 0 ? 0 : static_cast<std::uint8_t>(64 + (bits >> (8 * c)) % 192);
      }
    }
  } else if (options_.pixels.grey) {
    renderer.draw(grey_);
    for (std::size_t i = 0; i < grey_.size(); ++i) {
      std::fill_n(rgb.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, grey_[i]);
    }
  } else {
    renderer.draw(rgb);
  }
}

std::span<const std::uint8_t> View::draw() {
  for (std::size_t i = 0; i < renderers_.size(); ++i) {
    draw_one(*renderers_[i], pictures_[i]);
  }
  if (!options_.both) {
    return pictures_.front();
  }
  likeness_ =
      ViewLikeness{env::structural_similarity(pictures_[0], pictures_[1],
                                              {options_.pixels.height, options_.pixels.width, 3}),
                   env::mean_absolute_difference(pictures_[0], pictures_[1])};
  env::difference_picture(pictures_[0], pictures_[1], options_.gain, pictures_[2]);
  const auto row = static_cast<std::size_t>(options_.pixels.width) * 3;
  auto out = beside_.begin();
  for (std::size_t y = 0; y < static_cast<std::size_t>(height()); ++y) {
    for (const auto& picture : pictures_) {
      out = std::copy_n(picture.begin() + static_cast<std::ptrdiff_t>(y * row), row, out);
    }
  }
  return beside_;
}

} // namespace troupe::experiments::commands
