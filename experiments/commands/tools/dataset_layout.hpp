#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "experiments/commands/tools/dataset_render.hpp"

namespace troupe::experiments::commands {

/// The layout of rows in files. Add the rows in order, on one thread.
class SceneLayout {
public:
  virtual ~SceneLayout() = default;
  /// Encodes a row's RGB levels [size, size, 3] as the bytes to store. May be called from any
  /// thread.
  virtual std::vector<std::byte> stored(std::vector<std::uint8_t> rgb) const = 0;
  /// `number` is the index of the row within its class.
  virtual void add(std::size_t label, std::int64_t number, std::span<const std::byte> stored) = 0;
  /// Moves everything to its final name. Nothing may be added afterwards.
  virtual void finish() = 0;
};

/// Throws std::invalid_argument if the layout cannot hold the classes or the size, or its output
/// exists, and std::runtime_error if it cannot be written.
std::unique_ptr<SceneLayout> make_scene_layout(const SceneOptions& options);

} // namespace troupe::experiments::commands
