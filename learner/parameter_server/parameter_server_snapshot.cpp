#include "learner/parameter_server/parameter_server_snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>

#include "learner/gradients/optimizer_state.hpp"
#include "learner/parameter_server/parameter_server_worker.hpp"
#include "learner/parameter_server/parameter_wire.hpp"

namespace troupe::learner {
namespace {

constexpr std::uint32_t kFormat = 1;
const std::string kStatePrefix = "optimizer.";

at::Tensor bytes_of(const std::string& text) {
  auto tensor = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr<std::uint8_t>(), text.data(), text.size());
  return tensor;
}

const at::Tensor& saved_tensor(const TensorMap& snapshot, const std::string& name) {
  const auto at = snapshot.find(name);
  if (at == snapshot.end())
    throw std::invalid_argument("the snapshot of a parameter server has no tensor \"" + name
                                + "\"");
  return at->second;
}

wire::SnapshotHeader header_of(const TensorMap& snapshot) {
  const at::Tensor& bytes = saved_tensor(snapshot, "header");
  wire::SnapshotHeader header;
  if (bytes.scalar_type() != at::kByte || !bytes.is_contiguous()
      || !header.ParseFromArray(bytes.const_data_ptr<std::uint8_t>(),
                                static_cast<int>(bytes.numel()))
      || header.format() != kFormat || header.version() < 0
      || header.version() > ParameterServer::kMostVersion)
    throw std::invalid_argument("the \"header\" of the snapshot of a parameter server is damaged "
                                "or has another format");
  return header;
}

ServedSlice saved_slice(const wire::SnapshotHeader& header) {
  std::string why;
  auto slice = decode(header.slice(), why);
  if (!slice)
    throw std::invalid_argument("the snapshot of a parameter server has " + why);
  return std::move(*slice);
}

TensorMap saved_moments(const TensorMap& snapshot) {
  TensorMap state;
  for (const auto& [name, tensor] : snapshot)
    if (name.starts_with(kStatePrefix))
      state[name.substr(kStatePrefix.size())] = tensor;
  return state;
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
    // A gradient that is waiting for others is not part of the snapshot; it must be sent again.
    const std::int64_t waiting = worker->counted ? 1 : 0;
    mark.set_last_step(worker->last_step - waiting);
    mark.set_clock(worker->clock - waiting);
    mark.set_outcome(static_cast<std::uint32_t>(worker->last_answer.outcome));
    mark.set_staleness(worker->last_answer.staleness);
    mark.set_rate_scale(worker->last_answer.rate_scale);
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
  begin(saved_slice(header), saved_tensor(snapshot, "parameters"), header.version());
  load_optimizer_state(*optimizer_, saved_moments(snapshot));
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
    worker.last_step = std::max<std::int64_t>(0, mark.last_step());
    worker.clock = std::max<std::int64_t>(0, mark.clock());
    const bool valid = mark.outcome() >= static_cast<std::uint32_t>(Outcome::applied)
                       && mark.outcome() <= static_cast<std::uint32_t>(Outcome::refused);
    worker.last_answer = {.outcome =
                              valid ? static_cast<Outcome>(mark.outcome()) : Outcome::dropped,
                          .staleness = mark.staleness(),
                          .rate_scale = mark.rate_scale()};
  }
}

void ParameterServer::replace(const TensorMap& snapshot, std::int64_t load) {
  if (load <= loads_)
    return;
  check_same(saved_slice(header_of(snapshot)));
  ParameterServer loaded(options_, started_, make_);
  loaded.begin(slice_, saved_tensor(snapshot, "parameters"));
  load_optimizer_state(*loaded.optimizer_, saved_moments(snapshot));
  parameters_ = std::move(loaded.parameters_);
  pieces_ = std::move(loaded.pieces_);
  optimizer_ = std::move(loaded.optimizer_);
  rates_ = std::move(loaded.rates_);
  for (const auto& worker : workers_) // gradients on the parameters before
    if (std::exchange(worker->counted, false) && !worker->present.empty())
      ++counters_.dropped;
  loads_ = load;
}

namespace {

/// A parsed snapshot.
struct Part {
  const TensorMap* tensors;
  wire::SnapshotHeader header;
  ServedSlice slice;
  at::Tensor parameters;
};

/// A segment of a part, with the offset of its elements in that part and its number in the
/// optimizer's state.
struct Piece {
  const Part* part;
  Segment segment;
  std::int64_t offset;
  std::size_t number;
};

/// Returns the segments' numbers in an optimizer's state, which numbers them by param group.
std::vector<std::size_t> state_numbers(const std::vector<Segment>& segments) {
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return segments[a].group < segments[b].group;
  });
  std::vector<std::size_t> numbers(segments.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    numbers[order[i]] = i;
  return numbers;
}

Part part_of(const TensorMap& snapshot) {
  Part part{.tensors = &snapshot,
            .header = header_of(snapshot),
            .slice = {},
            .parameters = saved_tensor(snapshot, "parameters")};
  part.slice = saved_slice(part.header);
  if (part.slice.segments.empty() || part.parameters.dim() != 1
      || part.parameters.numel() != elements_of(part.slice.segments)
      || part.parameters.scalar_type() != part.slice.type)
    throw std::invalid_argument("the snapshot of a parameter server has parameters "
                                + c10::str(part.parameters.scalar_type(), part.parameters.sizes())
                                + " for a slice of " + c10::str(part.slice.type) + "["
                                + std::to_string(elements_of(part.slice.segments)) + "]");
  return part;
}

/// Returns all segments in the order of parameters and elements. Throws unless they form whole
/// parameters.
std::vector<Piece> pieces_of(const std::vector<Part>& parts) {
  std::vector<Piece> pieces;
  for (const Part& part : parts) {
    const auto numbers = state_numbers(part.slice.segments);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Segment& segment = part.slice.segments[i];
      pieces.push_back({&part, segment, offset, numbers[i]});
      offset += segment.count;
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.segment.parameter, a.segment.begin)
           < std::tie(b.segment.parameter, b.segment.begin);
  });
  std::int64_t parameter = -1, end = 0;
  for (const Piece& piece : pieces) {
    const Segment& segment = piece.segment;
    if (segment.parameter == parameter + 1 && segment.begin == 0) {
      ++parameter;
      end = 0;
    }
    if (segment.parameter != parameter || segment.begin != end)
      throw std::invalid_argument("the snapshots of the parameter servers do not hold parameter "
                                  + std::to_string(parameter < 0 ? 0 : parameter) + " from element "
                                  + std::to_string(end)
                                  + ", each element once: a part is missing or from another run");
    end += segment.count;
  }
  return pieces;
}

ShardPlan plan_of(const std::vector<Piece>& pieces, int shards) {
  std::vector<ParameterSize> sizes;
  for (const Piece& piece : pieces) {
    if (piece.segment.begin == 0)
      sizes.push_back({.elements = 0, .group = piece.segment.group});
    sizes.back().elements += piece.segment.count;
  }
  return plan_shards(sizes, shards);
}

/// Copies elements [begin, begin + count) of the optimizer's state of `piece` to elements [at, at +
/// count) of a state of `all` elements in `out`.
void take_state(const Piece& piece, std::int64_t begin, std::int64_t count, std::int64_t at,
                std::int64_t all, const std::string& prefix, TensorMap& out) {
  const std::string from = kStatePrefix + std::to_string(piece.number) + ".";
  for (auto entry = piece.part->tensors->lower_bound(from);
       entry != piece.part->tensors->end() && entry->first.starts_with(from); ++entry) {
    const at::Tensor& tensor = entry->second;
    at::Tensor& made = out[prefix + entry->first.substr(from.size())];
    if (tensor.scalar_type() == at::kLong && tensor.numel() == 1) { // a step counter
      made = made.defined() ? at::maximum(made, tensor) : tensor.clone();
      continue;
    }
    if (tensor.dim() != 1 || tensor.numel() != piece.segment.count
        || (made.defined() && made.scalar_type() != tensor.scalar_type()))
      throw std::invalid_argument("\"" + entry->first
                                  + "\" of the snapshot of a parameter server is "
                                  + c10::str(tensor.scalar_type(), tensor.sizes())
                                  + " for a segment of " + std::to_string(piece.segment.count));
    if (!made.defined())
      made = at::zeros({all}, tensor.options());
    made.narrow(0, at, count).copy_(tensor.narrow(0, begin, count));
  }
}

/// Returns the snapshot from which a server of these segments restores.
TensorMap gather(const std::vector<Piece>& pieces, const std::vector<Segment>& segments) {
  const at::NoGradGuard guard;
  TensorMap out;
  const Part* newest = nullptr;
  auto parameters = at::empty({elements_of(segments)}, pieces.front().part->parameters.options());
  const auto numbers = state_numbers(segments);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& wanted = segments[i];
    for (const Piece& piece : pieces) {
      const Segment& held = piece.segment;
      const auto begin = std::max(wanted.begin, held.begin);
      const auto count = std::min(wanted.begin + wanted.count, held.begin + held.count) - begin;
      if (held.parameter != wanted.parameter || count <= 0)
        continue;
      parameters.narrow(0, offset + begin - wanted.begin, count)
          .copy_(piece.part->parameters.narrow(0, piece.offset + begin - held.begin, count));
      take_state(piece, begin - held.begin, count, begin - wanted.begin, wanted.count,
                 kStatePrefix + std::to_string(numbers[i]) + ".", out);
      if (!newest || piece.part->header.version() > newest->header.version())
        newest = piece.part;
    }
    offset += wanted.count;
  }
  wire::SnapshotHeader header = newest->header;
  header.clear_workers();
  *header.mutable_slice() = encode(ServedSlice{
      .recipe = newest->slice.recipe, .segments = segments, .type = parameters.scalar_type()});
  out["header"] = bytes_of(header.SerializeAsString());
  out["parameters"] = parameters;
  return out;
}

} // namespace

void check_snapshot(const TensorMap& snapshot) {
  part_of(snapshot);
}

std::vector<TensorMap> reshard(const std::vector<TensorMap>& snapshots, int shards) {
  std::vector<Part> parts;
  for (const TensorMap& snapshot : snapshots)
    parts.push_back(part_of(snapshot));
  for (const Part& part : parts)
    if (part.slice.type != parts.front().slice.type
        || part.slice.recipe.name != parts.front().slice.recipe.name
        || part.slice.recipe.groups.size() != parts.front().slice.recipe.groups.size())
      throw std::invalid_argument("the snapshots of the parameter servers are of different "
                                  "optimizers or types; give those of one checkpoint");
  const auto pieces = pieces_of(parts);
  if (pieces.empty())
    throw std::invalid_argument(
        "there is no snapshot of a parameter server; give the snapshots of all");
  std::vector<TensorMap> out;
  for (const auto& segments : plan_of(pieces, shards)) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
      return part.slice.segments == segments;
    });
    if (same != parts.end()) {
      auto& copy = out.emplace_back(*same->tensors);
      same->header.clear_workers();
      copy["header"] = bytes_of(same->header.SerializeAsString());
      continue;
    }
    for (const Part& part : parts)
      if (part.tensors->contains(kStatePrefix + "archive"))
        throw std::invalid_argument("the state of optimizer " + part.slice.recipe.name
                                    + " cannot be spread over " + std::to_string(shards)
                                    + " servers; resume with " + std::to_string(parts.size())
                                    + ", as it was saved");
    out.push_back(gather(pieces, segments));
  }
  return out;
}

} // namespace troupe::learner
