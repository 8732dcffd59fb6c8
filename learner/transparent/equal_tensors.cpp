#include "learner/transparent/equal_tensors.hpp"

#include "collectives/communicator.hpp"
#include "learner/transparent/fingerprint.hpp"

namespace troupe::learner::transparent {
namespace {

using collectives::Communicator;

constexpr std::int64_t kBytes = 8 << 20; // size of a buffer
constexpr std::int64_t kAlignment = 16;  // alignment of a tensor in it

std::int64_t room_of(const at::Tensor& tensor) {
  const auto bytes = tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Returns a view of `flat` at byte `begin`, with the type and shape of `like`.
at::Tensor part(const at::Tensor& flat, std::int64_t begin, const at::Tensor& like) {
  const auto bytes = like.numel() * static_cast<std::int64_t>(like.element_size());
  return flat.narrow(0, begin, bytes).view(like.scalar_type()).view(like.sizes());
}

/// Consecutive tensors that share a buffer.
struct Run {
  std::vector<at::Tensor> tensors;
  std::int64_t bytes = 0;
};

std::vector<Run> in_runs(const std::vector<at::Tensor>& tensors) {
  std::vector<Run> runs;
  for (const auto& tensor : tensors) {
    if (tensor.numel() == 0)
      continue;
    if (runs.empty() || runs.back().bytes + room_of(tensor) > kBytes)
      runs.emplace_back();
    // data() has a separate version counter. Batch norm's buffers may be part of a graph whose
    // backward pass is still to come.
    runs.back().tensors.push_back(tensor.data());
    runs.back().bytes += room_of(tensor);
  }
  return runs;
}

/// Copies the tensors to one buffer in CPU memory, whatever their device.
at::Tensor packed(const Run& run) {
  const auto flat = at::zeros({run.bytes}, at::kByte);
  std::int64_t begin = 0;
  for (const auto& tensor : run.tensors) {
    part(flat, begin, tensor).copy_(tensor);
    begin += room_of(tensor);
  }
  return flat;
}

} // namespace

bool broadcast_from_rank_0(const std::vector<at::Tensor>& tensors, Communicator& communicator) {
  const at::NoGradGuard no_grad;
  bool differed = false;
  for (const auto& run : in_runs(tensors)) {
    auto flat = packed(run);
    const auto mine = fingerprint(flat);
    communicator.broadcast(flat, 0);
    if (fingerprint(flat) == mine)
      continue;
    differed = true;
    std::int64_t begin = 0;
    for (const auto& tensor : run.tensors) {
      tensor.copy_(part(flat, begin, tensor));
      begin += room_of(tensor);
    }
  }
  return differed;
}

std::vector<int> ranks_that_differ(const std::vector<at::Tensor>& tensors,
                                   Communicator& communicator) {
  const at::NoGradGuard no_grad;
  std::uint64_t hash = 0;
  for (const auto& run : in_runs(tensors))
    hash = hash * 31 + fingerprint(packed(run));
  const auto mine = at::full({1}, static_cast<std::int64_t>(hash), at::kLong);
  const auto all = communicator.all_gather(mine);
  std::vector<int> others;
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].item<std::int64_t>() != all[0].item<std::int64_t>())
      others.push_back(static_cast<int>(rank));
  return others;
}

} // namespace troupe::learner::transparent
