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

/// The pictures of a batch on a device, piece by piece: while the device draws one piece, threads
/// build the frames of the next. One caller at a time.
class BatchDrawing {
public:
  /// `threads` build frames, the caller among them where it is 1. `device` must outlive this.
  /// Throws std::invalid_argument (threads, and what BatchFrames refuses).
  BatchDrawing(std::shared_ptr<const CasterModel> model, int environments,
               const CastOptions& options, int threads, CudaDevice& device);

  std::size_t environments() const { return frames_.environments(); }
  std::size_t bytes() const { return frames_.format().bytes() * frames_.environments(); }

  /// As BatchCaster::draw().
  void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
            std::span<std::uint8_t> host);

private:
  /// Consecutive environments whose frames travel in one block: views, then `room_` bytes each.
  struct Piece {
    std::size_t first = 0;
    std::size_t count = 0;
    CudaDevice::Staging staging;
    std::atomic<std::size_t> left{0}; // frames to come
  };

  Piece& piece_of(std::size_t environment) { return *pieces_[environment / kPieceSize]; }
  std::size_t room_for_views(const Piece& piece) const;
  bool pass(bool build, std::span<const mjModel* const> models,
            std::span<const mjData* const> states);
  void make_room();
  void pack(std::size_t environment);
  void queue(std::size_t number);
  void fail(); // with the current exception

  static constexpr std::size_t kPieceSize = 128;
  CudaDevice& device_;
  BatchFrames frames_;
  bool effects_;
  std::size_t room_ = 0; // for one frame
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::atomic<bool> lacks_room_{false};
  std::atomic<bool> failed_{false};
  std::mutex mutex_; // guards failure_
  std::exception_ptr failure_;
  WorkerThreads workers_; // last: they use all of the above
};

} // namespace troupe::env::caster
