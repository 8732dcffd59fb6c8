#include "collectives/backends/hierarchical_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace troupe::collectives {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::int64_t width(const std::vector<std::vector<int>>& ranks) { // ranks on the largest host
  std::size_t most = 0;
  for (const auto& host : ranks)
    most = std::max(most, host.size());
  return static_cast<std::int64_t>(most);
}

} // namespace

bool Hosts::even() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const auto& those) { return those.size() == ranks[0].size(); });
}

HierarchicalBackend::HierarchicalBackend(int rank, int size, Hosts hosts,
                                         std::unique_ptr<Communicator> inner,
                                         std::unique_ptr<Communicator> outer,
                                         std::shared_ptr<ControlMesh> mesh,
                                         c10::intrusive_ptr<c10d::Store> store)
    : FlatBackend(rank, size),
      hosts_(std::move(hosts)),
      inner_(std::move(inner)),
      outer_(std::move(outer)),
      mesh_(std::move(mesh)),
      store_(std::move(store)) {}

void HierarchicalBackend::poison(const std::string& message) {
  mesh_->abort(message);
  inner_->abort(message); // releases ranks that are waiting for data
  if (outer_)
    outer_->abort(message);
}

void HierarchicalBackend::run(const FlatCall& call) {
  mesh_->agree(call.fingerprint);
  // In an uneven exchange, other ranks may have data even if this one has none.
  const bool uneven = call.fingerprint.dimensions == Fingerprint::kNoShape;
  if (call.fingerprint.kind == Kind::barrier || (!uneven && call.input.numel() == 0))
    return;
  const at::NoGradGuard guard;
  try {
    move(call);
  } catch (const std::exception& error) {
    inner_->abort(error.what());
    if (outer_)
      outer_->abort(error.what());
    mesh_->data_failed(call.fingerprint, error.what());
  }
}

void HierarchicalBackend::move(const FlatCall& call) {
  auto output = call.output;
  const auto type = call.input.scalar_type();
  const auto op = static_cast<ReduceOp>(call.fingerprint.op);
  const auto sum = op == ReduceOp::mean ? ReduceOp::sum : op;
  const auto wide = at::isReducedFloatingType(type) ? call.input.to(at::kFloat) : call.input;
  const auto finish = [&](at::Tensor result) {
    if (op == ReduceOp::mean)
      result.div_(getSize());
    output.copy_(result.view(output.sizes()));
  };
  switch (call.fingerprint.kind) {
  case Kind::all_reduce:
    return finish(reduced(wide, sum));
  case Kind::reduce_scatter:
    return finish(scattered(wide.view({getSize(), -1}), sum));
  case Kind::all_gather:
    output.view({getSize(), -1}).copy_(gathered(call.input.view({-1})));
    return;
  case Kind::broadcast:
    return broadcast_from(output, call.fingerprint.root);
  case Kind::all_to_all:
    if (call.fingerprint.dimensions != Fingerprint::kNoShape && hosts_.even())
      output.view({getSize(), -1}).copy_(exchanged(call.input.view({getSize(), -1})));
    else
      exchange_unevenly(call);
    return;
  case Kind::barrier:
    return;
  }
}

/// Returns the reduction of all ranks' `input`, flattened.
at::Tensor HierarchicalBackend::reduced(const at::Tensor& input, ReduceOp op) {
  auto flat = input.view({-1});
  if (!hosts_.even()) {
    auto result = flat.clone();
    inner_->all_reduce(result, op);
    if (outer_)
      outer_->all_reduce(result, op);
    inner_->broadcast(result, 0);
    return result;
  }
  const std::int64_t here = inner_->size();
  const auto slice = (flat.numel() + here - 1) / here;
  if (slice * here != flat.numel())
    flat = at::cat({flat, at::zeros({slice * here - flat.numel()}, flat.options())});
  auto mine = inner_->reduce_scatter(flat, op); // over the host
  outer_->all_reduce(mine, op);                 // over all ranks
  return at::cat(inner_->all_gather(mine)).narrow(0, 0, input.numel());
}

/// Returns this rank's row of the reduction of `input`, [size, n].
at::Tensor HierarchicalBackend::scattered(const at::Tensor& input, ReduceOp op) {
  if (!hosts_.even())
    return reduced(input, op).view(input.sizes())[getRank()];
  std::vector<at::Tensor> rows; // for each position, the rows of its rank on every host
  for (int position = 0; position < inner_->size(); ++position)
    for (const auto& host : hosts_.ranks)
      rows.push_back(input[host[index(position)]]);
  const auto mine = inner_->reduce_scatter(at::stack(rows), op); // [hosts, n]
  return outer_->reduce_scatter(mine, op)[0];
}

/// Gathers all ranks' `input`, [n], as [size, n].
at::Tensor HierarchicalBackend::gathered(const at::Tensor& input) {
  auto result = at::empty({getSize(), input.numel()}, input.options());
  if (hosts_.even()) {
    const auto column = at::stack(outer_->all_gather(input)); // [hosts, n], same position
    const auto all = inner_->all_gather(column);              // [position][hosts, n]
    for (std::size_t host = 0; host < hosts_.ranks.size(); ++host)
      for (std::size_t position = 0; position < all.size(); ++position)
        result[hosts_.ranks[host][position]].copy_(all[position][static_cast<std::int64_t>(host)]);
    return result;
  }
  auto rows = at::stack(inner_->all_gather(input)); // [position, n]
  if (outer_) {
    const auto most = width(hosts_.ranks);
    const auto all = outer_->all_gather(
        at::cat({rows, at::zeros({most - rows.size(0), input.numel()}, input.options())}));
    for (std::size_t host = 0; host < all.size(); ++host)
      for (std::size_t position = 0; position < hosts_.ranks[host].size(); ++position)
        result[hosts_.ranks[host][position]].copy_(all[host][static_cast<std::int64_t>(position)]);
  }
  inner_->broadcast(result, 0);
  return result;
}

void HierarchicalBackend::broadcast_from(at::Tensor data, int root) {
  int from_host = 0, from_position = 0;
  for (std::size_t host = 0; host < hosts_.ranks.size(); ++host)
    for (std::size_t position = 0; position < hosts_.ranks[host].size(); ++position)
      if (hosts_.ranks[host][position] == root) {
        from_host = static_cast<int>(host);
        from_position = static_cast<int>(position);
      }
  if (hosts_.host == from_host)
    inner_->broadcast(data, from_position);
  if (hosts_.position == 0)
    outer_->broadcast(data, from_host);
  if (hosts_.host != from_host)
    inner_->broadcast(data, 0);
}

/// Sends row i of `input`, [size, n], to rank i. Row i of the result comes from rank i.
at::Tensor HierarchicalBackend::exchanged(const at::Tensor& input) {
  // Data move first to the target's counterpart on this host, then over the network to the target.
  std::vector<at::Tensor> out;
  for (int position = 0; position < inner_->size(); ++position) {
    std::vector<at::Tensor> rows;
    for (const auto& host : hosts_.ranks)
      rows.push_back(input[host[index(position)]]);
    out.push_back(at::stack(rows)); // [hosts, n]
  }
  const auto here = at::stack(inner_->all_to_all(out)); // [from position, to host, n]
  out.clear();
  for (std::size_t host = 0; host < hosts_.ranks.size(); ++host)
    out.push_back(here.select(1, static_cast<std::int64_t>(host)).contiguous());
  const auto there = outer_->all_to_all(out); // [from host][from position, n]
  auto result = at::empty_like(input);
  for (std::size_t host = 0; host < hosts_.ranks.size(); ++host)
    for (std::size_t position = 0; position < hosts_.ranks[host].size(); ++position)
      result[hosts_.ranks[host][position]].copy_(there[host][static_cast<std::int64_t>(position)]);
  return result;
}

/// Handles splits of any size: every rank receives everything and keeps its part. This is slow with
/// many ranks.
void HierarchicalBackend::exchange_unevenly(const FlatCall& call) {
  const auto bytes = [](const at::Tensor& tensor) {
    return at::empty({static_cast<std::int64_t>(tensor.nbytes())}, at::kByte);
  };
  auto splits = at::empty({getSize()}, at::kLong);
  for (int rank = 0; rank < getSize(); ++rank)
    splits[rank] = static_cast<std::int64_t>(call.in_splits[index(rank)]);
  const auto all_splits = gathered(splits); // [from, to], bytes
  const auto most = all_splits.sum(1).max().item<std::int64_t>();
  auto mine = bytes(call.input);
  if (call.input.nbytes() > 0)
    std::memcpy(mine.mutable_data_ptr(), call.input.const_data_ptr(), call.input.nbytes());
  mine = at::cat({mine, at::zeros({most - mine.numel()}, at::kByte)});
  const auto all = most > 0 ? gathered(mine) : at::Tensor(); // [from, bytes]
  auto* to = static_cast<std::byte*>(call.output.mutable_data_ptr());
  for (int from = 0; from < getSize(); ++from) {
    const auto begin = all_splits[from].narrow(0, 0, getRank()).sum().item<std::int64_t>();
    const auto count = all_splits[from][getRank()].item<std::int64_t>();
    if (static_cast<std::size_t>(count) != call.out_splits[index(from)])
      throw std::runtime_error("rank " + std::to_string(from) + " gives " + std::to_string(count)
                               + " bytes, rank " + std::to_string(getRank()) + " takes "
                               + std::to_string(call.out_splits[index(from)])
                               + "; the splits of both must agree");
    if (count > 0)
      std::memcpy(to, static_cast<const std::byte*>(all[from].const_data_ptr()) + begin,
                  index(count));
    to += count;
  }
}

} // namespace troupe::collectives
