#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/caster/cuda/frame_view.hpp"
#include "env/caster/cuda/kept_scene.hpp"

namespace troupe::env::caster {

/// Drawing of some of a batch's frames.
struct Launch {
  const FrameView* frames = nullptr; // device memory, [environments]
  int first = 0;                     // the batch's environment that has frames[0]
  int environments = 0;
  PictureFormat format;
  bool effects = true;
  bool any_perspective = false;
  bool any_orthographic = false;
  std::size_t words = 0;            // the most of one frame, BatchFrames::words()
  std::uint8_t* pictures = nullptr; // device memory, of frames[0]
  void* stream = nullptr;           // cudaStream_t
};

/// Most words of candidates: the masks of a block's groups must fit into its shared memory.
inline constexpr std::size_t kMostWords = 512;

// Queue the kernel for the frames whose camera is of that kind; return a cudaError_t.
int launch_perspective(const Launch& launch);
int launch_orthographic(const Launch& launch);

/// A CUDA device with the memory and the streams of one batch caster. What keep() copies stays
/// until the end. Every call may come from any thread, one at a time, but those of SceneMemory also
/// beside begin(); each throws std::runtime_error that names the CUDA function and the device.
class CudaDevice : public SceneMemory {
public:
  /// Memory of the host and its counterpart on the device.
  struct Staging {
    std::byte* host = nullptr;
    const std::byte* device = nullptr;
  };

  virtual void allocate_pictures(std::size_t bytes) = 0;
  virtual const std::uint8_t* pictures() const = 0; // device memory
  /// At least `bytes` bytes for that piece of the batch; invalidates what it had. Not between
  /// begin() and finish().
  virtual Staging staging(std::size_t piece, std::size_t bytes) = 0;
  /// Queues a copy of the first `staged` bytes of the piece's memory to the device, and drawing.
  /// Sets launch.pictures and launch.stream.
  virtual void begin(std::size_t piece, std::size_t staged, Launch launch) = 0;
  /// Waits for all that was begun, and copies the pictures to `host` unless it is empty.
  virtual void finish(std::span<std::uint8_t> host) = 0;
};

/// What the library libtroupe_caster_cuda.so exports as `troupe_caster_cuda_module`.
struct CudaModule {
  static constexpr int kVersion = 2;
  int version = kVersion;
  std::string (*unavailable)(int device); // why open() would throw; empty: it would not
  std::unique_ptr<CudaDevice> (*open)(int device);
};

} // namespace troupe::env::caster
