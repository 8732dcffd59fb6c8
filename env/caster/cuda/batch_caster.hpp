#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/caster/ray_caster.hpp"

namespace troupe::env {

/// Draws pictures of N environments of one model in one call on a GPU. It uses RayCaster's
/// formulas; at most 0.1% of the bytes differ, by one level. The pictures stay in device memory for
/// a learner. A caster is not thread-safe, but any number of casters may run in parallel.
class BatchCaster {
public:
  /// Draws on CUDA device `device`. `threads` threads prepare the frames; with 1, the calling
  /// thread does. Throws std::invalid_argument if the environments, threads or options are invalid,
  /// and std::runtime_error with the text of unavailable().
  BatchCaster(std::shared_ptr<const CasterModel> model, int environments,
              const CastOptions& options, int threads = 1, int device = 0);
  ~BatchCaster();
  BatchCaster(BatchCaster&&) noexcept;

  /// Returns why the constructor would throw on this machine, and the remedy; empty if it would
  /// not.
  static std::string unavailable(int device = 0);

  int environments() const;
  std::size_t bytes() const; // size of all pictures

  /// Draws one picture per state and returns when all are complete. `models`: one per environment,
  /// or one for all; RayCaster says how they may differ. `host`: receives a copy of the pictures;
  /// bytes() bytes, or empty for no copy. Allocates only if a state shows more than any earlier
  /// one. Throws std::invalid_argument if a size does not match, and std::runtime_error that names
  /// the CUDA function and the device.
  void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
            std::span<std::uint8_t> host = {});

  /// Returns the device memory with the last pictures: [environments, channels, height, width] or,
  /// with channels_last, [environments, height, width, channels]. It is valid for the lifetime of
  /// the BatchCaster; draw() overwrites it.
  const std::uint8_t* pictures() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env
