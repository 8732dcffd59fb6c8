#include <cuda_runtime.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/caster/cuda/batch_frames.hpp"
#include "env/caster/cuda/launch.hpp"

namespace troupe::env {

namespace {

using caster::PackedFrames;

/// Makes calls on one device; leaves the calling thread's current device as it was.
class Device {
public:
  explicit Device(int number) : number_(number) {}

  void check(cudaError_t error, const char* call) const {
    if (error != cudaSuccess)
      throw std::runtime_error(std::string(call) + " on CUDA device " + std::to_string(number_)
                               + " failed: " + cudaGetErrorString(error) + " ("
                               + cudaGetErrorName(error) + ")");
  }
  int number() const { return number_; }

private:
  int number_;
};

class CurrentDevice {
public:
  explicit CurrentDevice(const Device& device) {
    device.check(cudaGetDevice(&before_), "cudaGetDevice");
    device.check(cudaSetDevice(device.number()), "cudaSetDevice");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
  int before_ = 0;
};

/// A block of memory of the device, or of the host where the device can copy from it directly.
class Block {
public:
  enum class Where { device, pinned };
  Block() = default;
  Block(const Device& device, Where where, std::size_t bytes) : bytes_(bytes), where_(where) {
    if (where == Where::device)
      device.check(cudaMalloc(&at_, bytes), "cudaMalloc");
    else
      device.check(cudaHostAlloc(&at_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  ~Block() {
    if (at_ != nullptr)
      where_ == Where::device ? cudaFree(at_) : cudaFreeHost(at_);
  }
  Block(Block&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        where_(other.where_) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    std::swap(where_, other.where_);
    return *this;
  }
  std::byte* data() const { return static_cast<std::byte*>(at_); }
  std::size_t bytes() const { return bytes_; }

private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
  Where where_ = Where::device;
};

class DeviceMemory : public caster::KeptMemory {
public:
  explicit DeviceMemory(Device device) : device_(device) {}

  const std::byte* keep(std::span<const std::byte> bytes) override {
    blocks_.emplace_back(device_, Block::Where::device, bytes.size());
    replace(blocks_.back().data(), bytes);
    return blocks_.back().data();
  }
  void replace(const std::byte* kept, std::span<const std::byte> bytes) override {
    // The address is one that keep() gave: memory of ours.
    device_.check(cudaMemcpy(const_cast<std::byte*>(kept), bytes.data(), bytes.size(),
                             cudaMemcpyHostToDevice),
                  "cudaMemcpy of the scene");
  }

private:
  Device device_;
  std::vector<Block> blocks_;
};

class Stream {
public:
  explicit Stream(const Device& device) {
    device.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

class CudaBatchCaster : public BatchCaster {
public:
  CudaBatchCaster(std::shared_ptr<const CasterModel> model, int environments,
                  const CastOptions& options, int device)
      : device_(device),
        current_(std::make_unique<CurrentDevice>(device_)),
        memory_(device_),
        frames_(std::move(model), environments, options, memory_),
        stream_(device_),
        effects_(options.effects) {
    constexpr int kMostEnvironments = 65535; // a kernel's grid along z
    if (environments > kMostEnvironments)
      throw std::invalid_argument("environments: " + std::to_string(environments)
                                  + " are too many for one batch; it may have "
                                  + std::to_string(kMostEnvironments) + "; make several");
    pictures_ = Block(device_, Block::Where::device, bytes());
    current_.reset();
  }
  ~CudaBatchCaster() override {
    cudaGetDevice(&before_);
    cudaSetDevice(device_.number());
    cudaStreamSynchronize(stream_.get());
    cudaSetDevice(before_);
  }

  int environments() const override { return frames_.environments(); }
  std::size_t bytes() const override {
    return frames_.format().bytes() * static_cast<std::size_t>(environments());
  }
  const std::uint8_t* pictures() const override {
    return reinterpret_cast<const std::uint8_t*>(pictures_.data());
  }

  void draw(std::span<const mjModel* const> models, std::span<const mjData* const> states,
            std::span<std::uint8_t> host) override {
    if (!host.empty() && host.size() != bytes())
      throw std::invalid_argument("the pictures need a buffer of " + std::to_string(bytes())
                                  + " bytes, or an empty one; it has "
                                  + std::to_string(host.size()));
    const CurrentDevice current(device_);
    frames_.build(models, states);
    queue(send());
    if (!host.empty())
      device_.check(cudaMemcpyAsync(host.data(), pictures_.data(), bytes(), cudaMemcpyDeviceToHost,
                                    stream_.get()),
                    "cudaMemcpyAsync of the pictures");
    device_.check(cudaStreamSynchronize(stream_.get()), "drawing (cudaStreamSynchronize)");
  }

private:
  PackedFrames send() {
    const std::size_t bytes = frames_.bytes();
    if (bytes > sent_.bytes()) {
      const std::size_t room = bytes + bytes / 4;
      sent_ = {};
      sent_ = Block(device_, Block::Where::device, room);
      packed_ = {};
      packed_ = Block(device_, Block::Where::pinned, room);
    }
    const PackedFrames packed = frames_.pack(packed_.data(), sent_.data());
    device_.check(
        cudaMemcpyAsync(sent_.data(), packed_.data(), bytes, cudaMemcpyHostToDevice, stream_.get()),
        "cudaMemcpyAsync of the states");
    return packed;
  }

  void queue(const PackedFrames& packed) {
    if (packed.most_words > caster::kMostWords)
      throw std::runtime_error(
          "the scene shows more than the GPU's kernel can list ("
          + std::to_string(packed.most_words) + " words of candidates, at most "
          + std::to_string(caster::kMostWords) + "); draw it with RayCaster instead");
    const caster::Launch launch{.frames = packed.frames,
                                .environments = environments(),
                                .format = frames_.format(),
                                .effects = effects_,
                                .words = packed.most_words,
                                .pictures = reinterpret_cast<std::uint8_t*>(pictures_.data()),
                                .stream = stream_.get()};
    if (packed.any_perspective)
      device_.check(static_cast<cudaError_t>(caster::launch_perspective(launch)),
                    "launching the kernel");
    if (packed.any_orthographic)
      device_.check(static_cast<cudaError_t>(caster::launch_orthographic(launch)),
                    "launching the kernel");
  }

  Device device_;
  int before_ = 0;
  std::unique_ptr<CurrentDevice> current_; // while this is made
  DeviceMemory memory_;
  caster::BatchFrames frames_;
  Stream stream_;
  bool effects_;
  Block pictures_;
  Block packed_; // pinned
  Block sent_;   // the same on the device
};

} // namespace

std::string no_batch_caster(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    return std::string("cudaGetDeviceCount failed: ") + cudaGetErrorString(error)
           + "; install the NVIDIA driver of a GPU, or draw with RayCaster, which needs none";
  if (device < 0 || device >= count)
    return "there is no CUDA device " + std::to_string(device) + ", there are "
           + std::to_string(count)
           + ", numbered from 0; choose one of them, or draw with RayCaster";
  return {};
}

std::unique_ptr<BatchCaster> make_batch_caster(std::shared_ptr<const CasterModel> model,
                                               int environments, const CastOptions& options,
                                               int device) {
  const std::string why = no_batch_caster(device);
  if (!why.empty())
    throw std::runtime_error("no pictures can be drawn on a GPU: " + why);
  return std::make_unique<CudaBatchCaster>(std::move(model), environments, options, device);
}

} // namespace troupe::env
