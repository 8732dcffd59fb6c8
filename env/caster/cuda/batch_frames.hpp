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

/// The frames of N environments of one model, each as one block of bytes with pointers that are
/// valid at the reader's address. Several threads may call it, each for environments of its own;
/// allocates only when a state shows more than any before.
class BatchFrames {
public:
  /// Throws std::invalid_argument (environments, and what RayCaster refuses). `memory` must outlive
  /// this, and allow calls from any thread, one at a time.
  BatchFrames(std::shared_ptr<const CasterModel> model, int environments,
              const CastOptions& options, SceneMemory& memory);
  ~BatchFrames();

  std::size_t environments() const { return environments_.size(); }
  const PictureFormat& format() const { return format_; }

  /// Throws std::invalid_argument when there are not as many states, or models, as environments.
  /// `models`: each environment's (RayCaster says which may differ how), or one for all.
  void check(std::span<const mjModel* const> models, std::span<const mjData* const> states) const;
  void build(std::size_t environment, const mjModel& model, const mjData& data);

  // Of the frame that was built last.
  std::size_t bytes(std::size_t environment) const { return bytes_[environment]; }
  std::size_t words(std::size_t environment) const; // of 64 candidates, in its three sets
  bool orthographic(std::size_t environment) const;
  /// Writes to `block` (aligned to 64, of bytes() bytes), which the reader sees at `seen`.
  FrameView pack(std::size_t environment, std::byte* block, const std::byte* seen);

private:
  struct Environment;

  std::shared_ptr<const CasterModel> model_;
  PictureFormat format_;
  std::shared_mutex mutex_; // of kept_: exclusive while anything new is kept
  std::unique_ptr<KeptScene> kept_;
  std::vector<std::unique_ptr<Environment>> environments_;
  std::vector<std::size_t> bytes_;
};

} // namespace troupe::env::caster
