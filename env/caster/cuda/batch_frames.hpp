#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "env/caster/cuda/frame_view.hpp"
#include "env/caster/cuda/kept_scene.hpp"
#include "env/caster/ray_caster.hpp"

namespace troupe::env::caster {

/// Frames of a batch in one block of memory.
struct PackedFrames {
  const FrameView* frames = nullptr; // [environments], where the reader sees them
  std::size_t most_words = 0;        // of 64 candidates, in all three sets of one frame
  bool any_perspective = false;
  bool any_orthographic = false;
};

/// The frames of N environments of one model, as one block of bytes with pointers that are valid at
/// the reader's address. One thread at a time; allocates only when a state shows more than any
/// before.
class BatchFrames {
public:
  /// Throws std::invalid_argument (environments, and what RayCaster refuses). `memory` must outlive
  /// this.
  BatchFrames(std::shared_ptr<const CasterModel> model, int environments,
              const CastOptions& options, SceneMemory& memory);
  ~BatchFrames();

  int environments() const { return static_cast<int>(environments_.size()); }
  const PictureFormat& format() const { return format_; }

  /// Throws std::invalid_argument when there are not as many states, or models, as environments.
  /// `models`: each environment's (RayCaster says which may differ how), or one for all.
  void build(std::span<const mjModel* const> models, std::span<const mjData* const> states);

  /// Bytes that pack() will write.
  std::size_t bytes();
  /// Writes to `block` (aligned to 64, of bytes() bytes), which the reader sees at `seen`.
  PackedFrames pack(std::byte* block, const std::byte* seen);

private:
  struct Environment;
  PackedFrames pack_into(class Arena& arena);

  std::shared_ptr<const CasterModel> model_;
  PictureFormat format_;
  std::unique_ptr<KeptScene> kept_;
  std::vector<std::unique_ptr<Environment>> environments_;
};

} // namespace troupe::env::caster
