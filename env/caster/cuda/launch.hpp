#pragma once

#include "env/caster/cuda/frame_view.hpp"

namespace troupe::env::caster {

/// Drawing of a batch of packed frames on the device that is current.
struct Launch {
  const FrameView* frames = nullptr; // device memory, [environments]
  int environments = 0;
  PictureFormat format;
  bool effects = true;
  std::size_t words = 0;            // PackedFrames::most_words
  std::uint8_t* pictures = nullptr; // device memory
  void* stream = nullptr;           // cudaStream_t
};

/// Groups' masks must fit into a block's shared memory.
inline constexpr std::size_t kMostWords = 512;

// Queue the kernel for the frames whose camera is of that kind; give a cudaError_t.
int launch_perspective(const Launch& launch);
int launch_orthographic(const Launch& launch);

} // namespace troupe::env::caster
