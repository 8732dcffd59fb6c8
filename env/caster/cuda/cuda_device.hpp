#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "env/caster/cuda/frame_view.hpp"
#include "env/caster/cuda/kept_scene.hpp"

namespace troupe::env::caster {

/// A launch that draws some of a batch's frames.
struct Launch {
  const FrameView* frames = nullptr; // device memory, [environments]
  int first = 0;                     // the environment of frames[0]
  int environments = 0;
  PictureFormat format;
  bool effects = true;
  bool any_perspective = false;
  bool any_orthographic = false;
  std::size_t words = 0;            // the maximum BatchFrames::words() of these frames
  std::uint8_t* pictures = nullptr; // device memory, starting with the picture of frames[0]
  void* stream = nullptr;           // cudaStream_t
};

/// The maximum number of mask words: the masks of all groups of a thread block must fit into its
/// shared memory.
inline constexpr std::size_t kMostWords = 512;

// Queue the kernel for the frames with this kind of camera. Return a cudaError_t.
int launch_perspective(const Launch& launch);
int launch_orthographic(const Launch& launch);

/// A CUDA device with the memory and the streams of one batch caster. The copies that keep() makes
/// are valid while this object exists. Any thread may call it, one at a time, except that the
/// functions of SceneMemory may run at the same time as begin(). Every function throws
/// std::runtime_error that names the CUDA function and the device.
class CudaDevice : public SceneMemory {
public:
  /// Host memory and its counterpart on the device.
  struct Staging {
    std::byte* host = nullptr;
    const std::byte* device = nullptr;
  };

  virtual void allocate_pictures(std::size_t bytes) = 0;
  virtual const std::uint8_t* pictures() const = 0; // device memory
  /// Returns at least `bytes` bytes for a piece of the batch and invalidates its previous memory.
  /// Must not be called between begin() and finish().
  virtual Staging staging(std::size_t piece, std::size_t bytes) = 0;
  /// Queues a copy of the first `staged` bytes of the piece's memory to the device, and the
  /// drawing. Sets launch.pictures and launch.stream.
  virtual void begin(std::size_t piece, std::size_t staged, Launch launch) = 0;
  /// Waits for everything queued, and copies the pictures to `host` unless it is empty.
  virtual void finish(std::span<std::uint8_t> host) = 0;
};

/// What libtroupe_caster_cuda.so exports as `troupe_caster_cuda_module`.
struct CudaModule {
  static constexpr int kVersion = 2;
  int version = kVersion;
  std::string (*unavailable)(int device); // why open() would throw; empty if it would not
  std::unique_ptr<CudaDevice> (*open)(int device);
};

} // namespace troupe::env::caster
