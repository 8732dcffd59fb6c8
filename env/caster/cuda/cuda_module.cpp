#include <cuda_runtime.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "env/caster/cuda/cuda_device.hpp"

namespace troupe::env::caster {

namespace {

void check(cudaError_t error, const char* call, int device) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(call) + " on CUDA device " + std::to_string(device)
                             + " failed: " + cudaGetErrorString(error) + " ("
                             + cudaGetErrorName(error) + ")");
}

/// Makes a device current for the calling thread until the end of the scope.
class CurrentDevice {
public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice", device);
    check(cudaSetDevice(device), "cudaSetDevice", device);
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
  int before_ = 0;
};

/// Owns memory of the current device or pinned host memory.
template <cudaError_t (*kFree)(void*)>
class Block {
public:
  Block() = default;
  Block(void* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  ~Block() {
    if (at_ != nullptr)
      kFree(at_);
  }
  Block(Block&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const { return static_cast<std::byte*>(at_); }
  std::size_t bytes() const { return bytes_; }

private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};
using DeviceBlock = Block<&cudaFree>;
using PinnedBlock = Block<&cudaFreeHost>;

class OpenDevice : public CudaDevice {
public:
  explicit OpenDevice(int device) : device_(device) {
    const CurrentDevice current(device_);
    for (cudaStream_t& stream : streams_)
      must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~OpenDevice() override { // cudaFree() finds a block's device by its address
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(device_);
    for (cudaStream_t stream : streams_) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    cudaSetDevice(before);
  }

  const std::byte* keep(std::span<const std::byte> bytes) override {
    const CurrentDevice current(device_);
    kept_.push_back(allocate(bytes.size()));
    copy_scene(kept_.back().data(), bytes);
    return kept_.back().data();
  }
  void replace(const std::byte* kept, std::span<const std::byte> bytes) override {
    const CurrentDevice current(device_);
    copy_scene(const_cast<std::byte*>(kept), bytes); // memory that keep() allocated
  }

  void allocate_pictures(std::size_t bytes) override {
    const CurrentDevice current(device_);
    pictures_ = allocate(bytes);
  }
  const std::uint8_t* pictures() const override {
    return reinterpret_cast<const std::uint8_t*>(pictures_.data());
  }

  Staging staging(std::size_t piece, std::size_t bytes) override {
    if (pieces_.size() <= piece)
      pieces_.resize(piece + 1);
    auto& [staged, packed] = pieces_[piece];
    if (bytes > staged.bytes()) {
      const CurrentDevice current(device_);
      staged = {}; // free the old block before allocating the larger one
      staged = allocate(bytes);
      packed = {};
      void* at = nullptr;
      must(cudaHostAlloc(&at, bytes, cudaHostAllocDefault), "cudaHostAlloc");
      packed = PinnedBlock(at, bytes);
    }
    return {packed.data(), staged.data()};
  }

  void begin(std::size_t piece, std::size_t staged, Launch launch) override {
    const CurrentDevice current(device_);
    const cudaStream_t stream = streams_[piece % kStreams]; // one copies while another draws
    must(cudaMemcpyAsync(pieces_[piece].staged.data(), pieces_[piece].packed.data(), staged,
                         cudaMemcpyHostToDevice, stream),
         "cudaMemcpyAsync of the states");
    launch.pictures = reinterpret_cast<std::uint8_t*>(pictures_.data())
                      + static_cast<std::size_t>(launch.first) * launch.format.bytes();
    launch.stream = stream;
    if (launch.any_perspective)
      must(static_cast<cudaError_t>(launch_perspective(launch)), "launching the kernel");
    if (launch.any_orthographic)
      must(static_cast<cudaError_t>(launch_orthographic(launch)), "launching the kernel");
  }

  void finish(std::span<std::uint8_t> host) override {
    const CurrentDevice current(device_);
    for (cudaStream_t stream : streams_)
      must(cudaStreamSynchronize(stream), "drawing (cudaStreamSynchronize)");
    if (!host.empty())
      must(cudaMemcpy(host.data(), pictures_.data(), host.size(), cudaMemcpyDeviceToHost),
           "cudaMemcpy of the pictures");
  }

private:
  void must(cudaError_t error, const char* call) const { check(error, call, device_); }
  DeviceBlock allocate(std::size_t bytes) const {
    void* at = nullptr;
    must(cudaMalloc(&at, bytes), "cudaMalloc");
    return {at, bytes};
  }
  void copy_scene(std::byte* to, std::span<const std::byte> from) const {
    must(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyHostToDevice),
         "cudaMemcpy of the scene");
  }

  int device_;
  static constexpr std::size_t kStreams = 2;
  struct Piece {
    DeviceBlock staged;
    PinnedBlock packed;
  };
  cudaStream_t streams_[kStreams] = {};
  std::vector<DeviceBlock> kept_;
  DeviceBlock pictures_;
  std::vector<Piece> pieces_;
};

std::string unavailable(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    return std::string("cudaGetDeviceCount failed: ") + cudaGetErrorString(error)
           + "; install the driver of an NVIDIA GPU";
  if (device < 0 || device >= count)
    return "there is no CUDA device " + std::to_string(device) + "; there are "
           + std::to_string(count) + ", numbered from 0";
  return {};
}

} // namespace

extern "C" {
extern const CudaModule troupe_caster_cuda_module;
const CudaModule troupe_caster_cuda_module{.version = CudaModule::kVersion,
                                           .unavailable = &unavailable,
                                           .open = [](int device) -> std::unique_ptr<CudaDevice> {
                                             return std::make_unique<OpenDevice>(device);
                                           }};
}

} // namespace troupe::env::caster
