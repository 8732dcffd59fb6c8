#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/caster/ray_caster.hpp"

namespace troupe::env {

/// Draws the pictures of N environments of one model at once on a GPU, by RayCaster's formulas: the
/// numbers differ by one level in at most 0.1% of the bytes. The pictures stay in the device's
/// memory for a learner. One thread at a time each; any number of them in parallel.
class BatchCaster {
public:
  /// Draws on CUDA device number `device` what `threads` threads make of the states; 1: the calling
  /// one. Throws std::invalid_argument (environments, threads, options; row_stride must be 0) and
  /// std::runtime_error with unavailable()'s text.
  BatchCaster(std::shared_ptr<const CasterModel> model, int environments,
              const CastOptions& options, int threads = 1, int device = 0);
  ~BatchCaster();
  BatchCaster(BatchCaster&&) noexcept;

  /// Why the constructor would throw on this machine, and the remedy; empty: it would not.
  static std::string unavailable(int device = 0);

  int environments() const;
  std::size_t bytes() const; // of all pictures

  /// Draws one picture of each state and returns when all are complete. `models`: one for each
  /// environment, or one for all; RayCaster::draw says what may differ. `host`: a copy of the
  /// pictures, bytes() bytes, or empty. Allocates only when a state shows more than any before.
  /// Throws std::invalid_argument (sizes) and std::runtime_error (the CUDA function and the
  /// device).
  void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
            std::span<std::uint8_t> host = {});

  /// Device memory of the last pictures, [environments, channels, height, width] or, with
  /// channels_last, [environments, height, width, channels]; valid until the BatchCaster ends,
  /// written by draw().
  const std::uint8_t* pictures() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env
