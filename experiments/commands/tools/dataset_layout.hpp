#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "experiments/commands/tools/dataset_render.hpp"

namespace troupe::experiments::commands {

/// How rows are laid down in files. Rows come in order, on one thread.
class SceneLayout {
public:
  virtual ~SceneLayout() = default;
  /// Bytes that a row is stored as, of its RGB levels [size, size, 3]. Any thread.
  virtual std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const = 0;
  /// `number` counts the rows of the class.
  virtual void add(std::size_t label, std::int64_t number, std::span<const std::byte> stored) = 0;
  /// Everything under its name; nothing may be added after.
  virtual void finish() = 0;
};

/// Throws std::invalid_argument when the layout cannot hold the classes or the size, or its output
/// is there; std::runtime_error when it cannot be written.
std::unique_ptr<SceneLayout> make_scene_layout(const SceneOptions& options);

} // namespace troupe::experiments::commands
