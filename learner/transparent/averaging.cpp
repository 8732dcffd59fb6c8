#include "learner/transparent/averaging.hpp"

#include "collectives/communicator.hpp"

namespace troupe::learner::transparent {
namespace {

using collectives::Communicator;
using collectives::ReduceOp;

/// Neighbours of one type and device whose elements fit one flat buffer.
struct Bucket {
  std::vector<at::Tensor> parameters;
  std::int64_t elements = 0;
};

std::vector<Bucket> in_buckets(const std::vector<at::Tensor>& parameters) {
  std::vector<Bucket> buckets;
  for (const auto& parameter : parameters) {
    const bool joins =
        !buckets.empty()
        && buckets.back().parameters.front().scalar_type() == parameter.scalar_type()
        && buckets.back().parameters.front().device() == parameter.device()
        && (buckets.back().elements + parameter.numel()) * parameter.element_size() <= kBucketBytes;
    if (!joins)
      buckets.emplace_back();
    buckets.back().parameters.push_back(parameter);
    buckets.back().elements += parameter.numel();
  }
  return buckets;
}

/// In the memory of the processor, wherever the parameters are.
at::Tensor flat_buffer(const Bucket& bucket, std::int64_t extra) {
  return at::zeros({bucket.elements + extra}, bucket.parameters.front().scalar_type());
}

at::Tensor slice(const at::Tensor& flat, std::int64_t begin, const at::Tensor& like) {
  return flat.narrow(0, begin, like.numel()).view(like.sizes());
}

at::Tensor packed(const Bucket& bucket) {
  auto flat = flat_buffer(bucket, 0);
  std::int64_t begin = 0;
  for (const auto& parameter : bucket.parameters) {
    slice(flat, begin, parameter).copy_(parameter.detach());
    begin += parameter.numel();
  }
  return flat;
}

/// The gradients, zero where there is none; the last elements say who has one.
void fill(const Bucket& bucket, at::Tensor& flat) {
  const auto count = static_cast<std::int64_t>(bucket.parameters.size());
  const auto& first = bucket.parameters.front();
  if (!flat.defined() || flat.numel() != bucket.elements + count
      || flat.scalar_type() != first.scalar_type())
    flat = flat_buffer(bucket, count);
  auto present = at::zeros({count}, at::kFloat);
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& parameter = bucket.parameters[static_cast<std::size_t>(i)];
    const auto& gradient = parameter.grad();
    auto into = slice(flat, begin, parameter);
    begin += parameter.numel();
    if (!gradient.defined()) {
      into.zero_();
      continue;
    }
    into.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
    present.mutable_data_ptr<float>()[i] = 1;
  }
  flat.narrow(0, bucket.elements, count).copy_(present);
}

void hand_out(const Bucket& bucket, const at::Tensor& flat) {
  const auto count = static_cast<std::int64_t>(bucket.parameters.size());
  const auto present = flat.narrow(0, bucket.elements, count).to(at::kFloat);
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& parameter = bucket.parameters[static_cast<std::size_t>(i)];
    auto& gradient = parameter.mutable_grad();
    const auto mean = slice(flat, begin, parameter);
    begin += parameter.numel();
    if (present.const_data_ptr<float>()[i] == 0)
      gradient = at::Tensor();
    else if (gradient.defined() && !gradient.is_sparse())
      gradient.copy_(mean);
    else
      gradient = mean.to(parameter.device(), parameter.scalar_type(), false, /*copy=*/true);
  }
}

/// [elements] of any type -> a number that differs when a byte does.
std::uint64_t fingerprint(const at::Tensor& flat) {
  const auto* bytes = static_cast<const unsigned char*>(flat.const_data_ptr());
  const auto count = static_cast<std::size_t>(flat.nbytes());
  std::uint64_t hash = 0xcbf29ce484222325ull;
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= count; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::copy_n(bytes + i, sizeof word, reinterpret_cast<unsigned char*>(&word));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  for (; i < count; ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

} // namespace

bool broadcast_parameters(const std::vector<at::Tensor>& parameters, Communicator& communicator) {
  const at::NoGradGuard no_grad;
  bool differed = false;
  for (const auto& bucket : in_buckets(parameters)) {
    const auto mine = packed(bucket);
    auto first = mine.clone();
    communicator.broadcast(first, 0);
    if (fingerprint(mine) == fingerprint(first))
      continue;
    differed = true;
    std::int64_t begin = 0;
    for (const auto& parameter : bucket.parameters) {
      parameter.detach().copy_(slice(first, begin, parameter));
      begin += parameter.numel();
    }
  }
  auto any = at::full({1}, differed ? 1.0f : 0.0f, at::kFloat);
  communicator.all_reduce(any, ReduceOp::max);
  return any.item<float>() > 0;
}

void average_gradients(const std::vector<at::Tensor>& parameters, Communicator& communicator,
                       bool from_rank_0, std::vector<at::Tensor>& buffers) {
  const at::NoGradGuard no_grad;
  const auto buckets = in_buckets(parameters);
  buffers.resize(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    fill(buckets[i], buffers[i]);
    if (from_rank_0)
      communicator.broadcast(buffers[i], 0);
    else
      communicator.all_reduce(buffers[i], ReduceOp::mean);
    hand_out(buckets[i], buffers[i]);
  }
}

std::vector<int> ranks_that_differ(const std::vector<at::Tensor>& parameters,
                                   Communicator& communicator) {
  const at::NoGradGuard no_grad;
  std::uint64_t hash = 0;
  for (const auto& bucket : in_buckets(parameters))
    hash = hash * 31 + fingerprint(packed(bucket));
  const auto mine = at::full({1}, static_cast<std::int64_t>(hash), at::kLong);
  const auto all = communicator.all_gather(mine);
  std::vector<int> others;
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].item<std::int64_t>() != all[0].item<std::int64_t>())
      others.push_back(static_cast<int>(rank));
  return others;
}

} // namespace troupe::learner::transparent
