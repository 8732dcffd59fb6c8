#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/caster/ray_caster.hpp"

namespace troupe::env {

/// Draws the pictures of N environments of one model at once on a GPU: the same pictures as
/// RayCaster's, by the same formulas. They stay in the device's memory for a learner.
///
/// One thread at a time each; any number of them in parallel.
class BatchCaster {
public:
  virtual ~BatchCaster() = default;

  virtual int environments() const = 0;
  virtual std::size_t bytes() const = 0; // of all pictures

  /// Draws one picture of each state and returns when all are there. `models`: one for each
  /// environment, or one for all; what may differ is as with RayCaster::draw. `host`: where the
  /// pictures are copied to, of bytes() bytes, or empty. Allocates only when a state shows more
  /// than any before. Throws std::invalid_argument (sizes), std::runtime_error (CUDA, naming the
  /// call and the device).
  virtual void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
                    std::span<std::uint8_t> host = {}) = 0;

  /// Device memory of the last pictures, [environments, channels, height, width] or, with
  /// channels_last, [environments, height, width, channels]; valid as long as this, written by
  /// draw().
  virtual const std::uint8_t* pictures() const = 0;
};

/// Why make_batch_caster() would refuse on this machine, in words; empty when it would not.
std::string no_batch_caster(int device = 0);

/// Draws on CUDA device number `device`. Throws std::invalid_argument (environments, options;
/// row_stride must be 0) and std::runtime_error when this program was built without CUDA or the
/// device is not there: the message says which, and what to do.
std::unique_ptr<BatchCaster> make_batch_caster(std::shared_ptr<const CasterModel> model,
                                               int environments, const CastOptions& options,
                                               int device = 0);

} // namespace troupe::env
