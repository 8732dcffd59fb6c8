#include "learner/replicas/tensor_map_broadcast.hpp"

#include <cstring>

#include <nlohmann/json.hpp>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace troupe::learner {
namespace {

/// Describes the tensors as {name: [type, sizes]}.
std::string broadcast_header_of(const TensorMap& tensors) {
  nlohmann::json header = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors)
    header[name] = {static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()};
  return header.dump();
}

TensorMap empty_tensors(const std::string& header, at::Device device) {
  TensorMap tensors;
  const auto parsed = nlohmann::json::parse(header);
  for (const auto& [name, about] : parsed.items())
    tensors[name] = at::empty(
        about.at(1).get<std::vector<std::int64_t>>(),
        at::TensorOptions(static_cast<at::ScalarType>(about.at(0).get<int>())).device(device));
  return tensors;
}

} // namespace

TensorMap broadcast_tensor_map(ReplicaContext& context, const TensorMap& mine, int root) {
  const bool is_root = context.rank_in_sync_group() == root;
  const auto device = context.device();
  auto header = is_root ? broadcast_header_of(mine) : std::string();
  auto length = at::full({1}, static_cast<std::int64_t>(header.size()), at::kLong).to(device);
  context.broadcast_(length, root);
  auto bytes = at::empty({length.item<std::int64_t>()}, at::kByte);
  if (is_root)
    std::memcpy(bytes.mutable_data_ptr(), header.data(), header.size());
  bytes = bytes.to(device);
  context.broadcast_(bytes, root);
  if (!is_root) {
    const auto here = bytes.cpu();
    header.assign(static_cast<const char*>(here.const_data_ptr()),
                  static_cast<std::size_t>(here.numel()));
  }
  auto tensors = is_root ? mine : empty_tensors(header, device);
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.detach().to(device).contiguous();
    context.broadcast_(tensor, root);
  }
  return tensors;
}

} // namespace troupe::learner
