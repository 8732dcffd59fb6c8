#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "env/caster/cuda/batch_frames.hpp"
#include "env/caster/cuda/cuda_device.hpp"
#include "env/caster/cuda/worker_threads.hpp"

namespace troupe::env::caster {

/// Draws the pictures of a batch on a device, piece by piece: while the device draws one piece,
/// threads build the frames of the next one. Not thread-safe.
class BatchDrawing {
public:
  /// `threads` threads build frames; with 1, the calling thread does. `device` must outlive this
  /// object. Throws std::invalid_argument if `threads` is less than 1 or BatchFrames rejects an
  /// argument.
  BatchDrawing(std::shared_ptr<const CasterModel> model, int environments,
               const CastOptions& options, int threads, CudaDevice& device);

  std::size_t environments() const { return frames_.environments(); }
  std::size_t bytes() const { return frames_.format().bytes() * frames_.environments(); }

  /// See BatchCaster::draw().
  void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
            std::span<std::uint8_t> host);

private:
  /// Consecutive environments whose frames are sent in one block: the views, then `room_` bytes per
  /// frame.
  struct Piece {
    std::size_t first = 0;
    std::size_t count = 0;
    CudaDevice::Staging staging;
    std::atomic<std::size_t> left{0}; // frames not yet packed
  };

  Piece& piece_of(std::size_t environment) { return *pieces_[environment / kPieceSize]; }
  std::size_t room_for_views(const Piece& piece) const;
  bool pass(bool build, std::span<const mjModel* const> models,
            std::span<const mjData* const> states);
  void make_room();
  void pack(std::size_t environment);
  void queue(std::size_t number);
  void fail(); // records the current exception

  static constexpr std::size_t kPieceSize = 128;
  CudaDevice& device_;
  BatchFrames frames_;
  bool effects_;
  std::size_t room_ = 0; // bytes per frame
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::atomic<bool> lacks_room_{false};
  std::atomic<bool> failed_{false};
  std::mutex mutex_; // guards failure_
  std::exception_ptr failure_;
  WorkerThreads workers_; // must be last: the threads use all members above
};

} // namespace troupe::env::caster
