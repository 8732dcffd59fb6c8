#include <cmath>
#include <cstring>
#include <stdexcept>

#include <ATen/ops/empty.h>

#include "learner/optimizer_state.hpp"
#include "learner/parameter_server_worker.hpp"
#include "learner/parameter_wire.hpp"

namespace troupe::learner {
namespace {

constexpr std::uint32_t kFormat = 1;
const std::string kStatePrefix = "optimizer.";

at::Tensor bytes_of(const std::string& text) {
  auto tensor = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr<std::uint8_t>(), text.data(), text.size());
  return tensor;
}

const at::Tensor& tensor_of(const TensorMap& snapshot, const std::string& name) {
  const auto at = snapshot.find(name);
  if (at == snapshot.end())
    throw std::invalid_argument("the snapshot of a parameter server has no tensor \"" + name
                                + "\"");
  return at->second;
}

wire::SnapshotHeader header_of(const TensorMap& snapshot) {
  const at::Tensor& bytes = tensor_of(snapshot, "header");
  wire::SnapshotHeader header;
  if (bytes.scalar_type() != at::kByte || !bytes.is_contiguous()
      || !header.ParseFromArray(bytes.const_data_ptr<std::uint8_t>(),
                                static_cast<int>(bytes.numel()))
      || header.format() != kFormat || header.version() < 0)
    throw std::invalid_argument("the \"header\" of the snapshot of a parameter server is damaged "
                                "or of another format");
  return header;
}

} // namespace

TensorMap ParameterServer::snapshot() const {
  TensorMap out;
  if (!has_begun())
    return out;
  wire::SnapshotHeader header;
  header.set_format(kFormat);
  *header.mutable_slice() = encode(slice_);
  header.set_version(version_);
  for (const auto& worker : workers_) {
    auto& mark = *header.add_workers();
    mark.set_session(worker->session);
    // A gradient that waits for others is not in the snapshot: it is to be sent again.
    mark.set_last_step(worker->counted ? worker->last_step - 1 : worker->last_step);
    mark.set_clock(worker->clock);
    mark.set_outcome(static_cast<std::uint32_t>(worker->last_answer.outcome));
    mark.set_staleness(worker->last_answer.staleness);
  }
  header.mutable_learning_rates()->Add(rates_.begin(), rates_.end());
  out["header"] = bytes_of(header.SerializeAsString());
  out["parameters"] = parameters_.clone();
  for (const auto& [name, tensor] : optimizer_state(*optimizer_))
    out[kStatePrefix + name] = tensor.clone();
  return out;
}

void ParameterServer::restore(const TensorMap& snapshot) {
  const wire::SnapshotHeader header = header_of(snapshot);
  std::string why;
  const auto slice = decode(header.slice(), why);
  if (!slice)
    throw std::invalid_argument("the snapshot of a parameter server has " + why);
  begin(*slice, tensor_of(snapshot, "parameters"), header.version());
  TensorMap state;
  for (const auto& [name, tensor] : snapshot)
    if (name.starts_with(kStatePrefix))
      state[name.substr(kStatePrefix.size())] = tensor;
  load_optimizer_state(*optimizer_, state);
  const std::vector<double> rates(header.learning_rates().begin(), header.learning_rates().end());
  if (rates.size() != rates_.size())
    throw std::invalid_argument("the snapshot of a parameter server has "
                                + std::to_string(rates.size()) + " learning rates for "
                                + std::to_string(rates_.size()) + " param groups");
  rates_ = rates;
  const auto known = std::min(workers_.size(), static_cast<std::size_t>(header.workers_size()));
  for (std::size_t i = 0; i < known; ++i) {
    const auto& mark = header.workers(static_cast<int>(i));
    Worker& worker = *workers_[i];
    worker.session = mark.session();
    worker.last_step = mark.last_step();
    worker.clock = mark.clock();
    const bool valid = mark.outcome() >= static_cast<std::uint32_t>(Outcome::applied)
                       && mark.outcome() <= static_cast<std::uint32_t>(Outcome::refused);
    worker.last_answer = {.outcome =
                              valid ? static_cast<Outcome>(mark.outcome()) : Outcome::dropped,
                          .staleness = mark.staleness()};
  }
}

} // namespace troupe::learner
