#pragma once

#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "env/caster/cuda/frame_view.hpp"
#include "env/caster/cuda/kept_scene.hpp"
#include "env/caster/ray_caster.hpp"

namespace troupe::env::caster {

struct FrameBuilder;

/// The frames of N environments of one model. Each is packed as one block of bytes with pointers
/// that are valid at the reader's address. Several threads may call it at once, for different
/// environments. Allocates only if a state shows more than any earlier one.
class BatchFrames {
public:
  /// Throws std::invalid_argument if there are no environments or RayCaster would reject the
  /// options. `memory` must outlive this object. It is called from any thread, but only from one at
  /// a time.
  BatchFrames(std::shared_ptr<const CasterModel> model, int environments,
              const CastOptions& options, SceneMemory& memory);
  ~BatchFrames();

  std::size_t environments() const { return environments_.size(); }
  const PictureFormat& format() const { return format_; }

  /// Throws std::invalid_argument unless there is one state per environment, and one model per
  /// environment or one for all. RayCaster says how the models may differ.
  void check(std::span<const mjModel* const> models, std::span<const mjData* const> states) const;
  void build(std::size_t environment, const mjModel& model, const mjData& data);

  // The functions below refer to the frame that was built last for the environment.
  std::size_t bytes(std::size_t environment) const { return bytes_[environment]; }
  std::size_t words(std::size_t environment)
      const; // mask words of its three candidate sets, 64 candidates per word
  bool orthographic(std::size_t environment) const;
  /// Writes the frame to `block` (bytes() bytes, aligned to 64), which the reader accesses at
  /// `seen`.
  FrameView pack(std::size_t environment, std::byte* block, const std::byte* seen);

private:
  std::shared_ptr<const CasterModel> model_;
  PictureFormat format_;
  std::shared_mutex mutex_; // guards kept_; exclusive when something new is kept
  std::unique_ptr<KeptScene> kept_;
  std::vector<std::unique_ptr<FrameBuilder>> environments_;
  std::vector<std::size_t> bytes_;
};

} // namespace troupe::env::caster
