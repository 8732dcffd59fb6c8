#include "collectives/thread_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "collectives/reduce.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kSmallBytes = 32 * 1024; // below, the last rank to come works for all
constexpr std::size_t kLine = 64;              // elements; slices do not share cache lines

template <class T>
class Pointers { // on the stack, or on the heap for more than 16 ranks
public:
  explicit Pointers(int size) : size_(static_cast<std::size_t>(size)) {
    if (size_ > few_.size())
      many_.resize(size_);
  }
  T& operator[](int i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

private:
  T* data() { return many_.empty() ? few_.data() : many_.data(); }
  std::size_t size_;
  std::array<T, 16> few_{};
  std::vector<T> many_;
};

/// Copies back into a tensor that was not contiguous.
void give_back(const at::Tensor& flat, at::Tensor& tensor) {
  if (!flat.is_same(tensor)) {
    const at::NoGradGuard guard;
    tensor.copy_(flat);
  }
}

} // namespace

ThreadBackend::ThreadBackend(int rank, std::shared_ptr<Meeting> meeting)
    : GuardedBackend(rank, meeting->size()), meeting_(std::move(meeting)) {}

ThreadBackend::~ThreadBackend() {
  meeting_->leave(getRank());
}

void ThreadBackend::poison(const std::string& message) {
  meeting_->poison(message);
}

void ThreadBackend::require(bool held, Kind kind, const std::string& rule) {
  if (!held)
    refuse(kind, rule);
}

void ThreadBackend::run(Fingerprint call, const at::Tensor& input, const at::Tensor& output,
                        Part part) {
  call.sequence = sequence_++;
  auto& slot = meeting_->slot(getRank());
  slot.input = input;
  slot.output = output;
  slot.in = input.defined() ? static_cast<const std::byte*>(input.const_data_ptr()) : nullptr;
  slot.out = output.defined() ? static_cast<std::byte*>(output.mutable_data_ptr()) : nullptr;
  slot.in_bytes = input.defined() ? input.nbytes() : 0;
  slot.out_bytes = output.defined() ? output.nbytes() : 0;
  const bool small =
      std::max(slot.in_bytes, slot.out_bytes) <= kSmallBytes
      && call.dimensions != Fingerprint::kNoShape; // equal on all ranks, for shapes are
  const auto last = [this, &call, part, small] {
    if (call.kind == Kind::all_to_all)
      check_splits();
    for (int rank = 0; small && rank < getSize(); ++rank)
      (this->*part)(rank, call);
  };
  meeting_->meet(getRank(), call, std::ref(last));
  if (!small) {
    (this->*part)(getRank(), call);
    meeting_->part(getRank());
  }
  slot.input.reset();
  slot.output.reset();
}

void ThreadBackend::reduce_part(int rank, const Fingerprint& call) {
  const auto type = static_cast<c10::ScalarType>(call.type);
  const auto element = c10::elementSize(type);
  const auto elements = meeting_->slot(0).in_bytes / element;
  const auto ranks = static_cast<std::size_t>(getSize());
  const auto slice = ((elements + ranks - 1) / ranks + kLine - 1) / kLine * kLine;
  const auto begin = std::min(elements, slice * static_cast<std::size_t>(rank));
  const auto count = std::min(elements, begin + slice) - begin;
  Pointers<const std::byte*> in(getSize());
  Pointers<std::byte*> out(getSize());
  for (int i = 0; i < getSize(); ++i) {
    in[i] = meeting_->slot(i).in + begin * element;
    out[i] = meeting_->slot(i).out + begin * element;
  }
  reduce_ranks(type, static_cast<ReduceOp>(call.op), in.span(), out.span(), count);
}

void ThreadBackend::scatter_part(int rank, const Fingerprint& call) {
  const auto type = static_cast<c10::ScalarType>(call.type);
  const auto bytes = meeting_->slot(rank).out_bytes;
  Pointers<const std::byte*> in(getSize());
  for (int i = 0; i < getSize(); ++i)
    in[i] = meeting_->slot(i).in + bytes * static_cast<std::size_t>(rank);
  std::byte* out = meeting_->slot(rank).out;
  reduce_ranks(type, static_cast<ReduceOp>(call.op), in.span(), {&out, 1},
               bytes / c10::elementSize(type));
}

void ThreadBackend::broadcast_part(int rank, const Fingerprint& call) {
  const auto& from = meeting_->slot(call.root);
  if (rank != call.root && from.in_bytes > 0)
    std::memcpy(meeting_->slot(rank).out, from.in, from.in_bytes);
}

void ThreadBackend::gather_part(int rank, const Fingerprint&) {
  std::byte* out = meeting_->slot(rank).out;
  for (int i = 0; i < getSize(); ++i) {
    const auto& from = meeting_->slot(i);
    if (from.in_bytes > 0)
      std::memcpy(out, from.in, from.in_bytes);
    out += from.in_bytes;
  }
}

void ThreadBackend::exchange_part(int rank, const Fingerprint&) {
  std::byte* out = meeting_->slot(rank).out;
  const auto to = static_cast<std::size_t>(rank);
  for (int i = 0; i < getSize(); ++i) {
    const auto& from = meeting_->slot(i);
    const auto begin =
        std::accumulate(from.in_splits.begin(),
                        from.in_splits.begin() + static_cast<std::ptrdiff_t>(to), std::size_t{0});
    const auto bytes = from.in_splits[to];
    if (bytes > 0)
      std::memcpy(out, from.in + begin, bytes);
    out += bytes;
  }
}

void ThreadBackend::check_splits() const {
  for (int from = 0; from < getSize(); ++from)
    for (int to = 0; to < getSize(); ++to) {
      const auto sent = meeting_->slot(from).in_splits[static_cast<std::size_t>(to)];
      const auto taken = meeting_->slot(to).out_splits[static_cast<std::size_t>(from)];
      if (sent != taken)
        throw CollectiveError("all_to_all: rank " + std::to_string(from) + " sends "
                              + std::to_string(sent) + " bytes to rank " + std::to_string(to)
                              + ", which expects " + std::to_string(taken) + "; make them equal");
    }
}

ThreadBackend::Work ThreadBackend::allreduce(std::vector<at::Tensor>& tensors,
                                             const c10d::AllreduceOptions& options) {
  auto& tensor = only(tensors, Kind::all_reduce);
  const auto op = operation(options.reduceOp);
  require(can_reduce(tensor.scalar_type(), op), Kind::all_reduce,
          std::string(op_name(op)) + " of " + type_name(tensor.scalar_type())
              + " is not defined; convert it to a floating-point type");
  const auto flat = tensor.contiguous();
  run(fingerprint_of(Kind::all_reduce, tensor, static_cast<int>(op)), flat, flat,
      &ThreadBackend::reduce_part);
  give_back(flat, tensor);
  return done_work(tensors);
}

ThreadBackend::Work ThreadBackend::broadcast(std::vector<at::Tensor>& tensors,
                                             const c10d::BroadcastOptions& options) {
  auto& tensor = only(tensors, Kind::broadcast);
  const auto root = static_cast<int>(options.rootRank);
  require(root >= 0 && root < getSize(), Kind::broadcast,
          "root " + std::to_string(root) + " is not a rank; there are "
              + std::to_string(getSize()));
  const auto flat = tensor.contiguous();
  run(fingerprint_of(Kind::broadcast, tensor, Fingerprint::kNoOp, root), flat, flat,
      &ThreadBackend::broadcast_part);
  give_back(flat, tensor);
  return done_work(tensors);
}

ThreadBackend::Work ThreadBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                   const c10d::AllgatherOptions&) {
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type()
              && output.numel() == input.numel() * getSize(),
          Kind::all_gather, "the output must be contiguous, of the input's type and size times it");
  std::vector<at::Tensor> inputs{input};
  run(fingerprint_of(Kind::all_gather, only(inputs, Kind::all_gather)), input.contiguous(), output,
      &ThreadBackend::gather_part);
  return done_work({output});
}

ThreadBackend::Work ThreadBackend::allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                             std::vector<at::Tensor>& inputs,
                                             const c10d::AllgatherOptions& options) {
  auto& input = only(inputs, Kind::all_gather);
  require(outputs.size() == 1 && outputs[0].size() == static_cast<std::size_t>(getSize()),
          Kind::all_gather, "one list of as many outputs as ranks is taken");
  for (const auto& output : outputs[0])
    require(output.sizes() == input.sizes() && output.scalar_type() == input.scalar_type(),
            Kind::all_gather, "every output must have the input's shape and type");
  auto flat = at::empty({getSize() * input.numel()}, input.options().requires_grad(false));
  _allgather_base(flat, input, options);
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < outputs[0].size(); ++i)
    outputs[0][i].copy_(flat.narrow(0, static_cast<std::int64_t>(i) * input.numel(), input.numel())
                            .view(input.sizes()));
  return done_work(outputs[0]);
}

ThreadBackend::Work ThreadBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                        const c10d::ReduceScatterOptions& options) {
  const auto op = operation(options.reduceOp);
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type()
              && output.numel() * getSize() == input.numel(),
          Kind::reduce_scatter,
          "the output must be contiguous, of the input's type and 1/size of it");
  require(can_reduce(input.scalar_type(), op), Kind::reduce_scatter,
          std::string(op_name(op)) + " of " + type_name(input.scalar_type())
              + " is not defined; convert it to a floating-point type");
  std::vector<at::Tensor> inputs{input};
  run(fingerprint_of(Kind::reduce_scatter, only(inputs, Kind::reduce_scatter),
                     static_cast<int>(op)),
      input.contiguous(), output, &ThreadBackend::scatter_part);
  return done_work({output});
}

ThreadBackend::Work ThreadBackend::reduce_scatter(std::vector<at::Tensor>& outputs,
                                                  std::vector<std::vector<at::Tensor>>& inputs,
                                                  const c10d::ReduceScatterOptions& options) {
  auto& output = only(outputs, Kind::reduce_scatter);
  require(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
          Kind::reduce_scatter, "one list of as many inputs as ranks is taken");
  for (const auto& input : inputs[0])
    require(input.sizes() == output.sizes() && input.scalar_type() == output.scalar_type(),
            Kind::reduce_scatter, "every input must have the output's shape and type");
  const at::NoGradGuard guard;
  std::vector<at::Tensor> rows;
  for (const auto& input : inputs[0])
    rows.push_back(input.reshape({-1}));
  auto flat = at::cat(rows);
  auto result = output.contiguous();
  _reduce_scatter_base(result, flat, options);
  give_back(result, output);
  return done_work(outputs);
}

void ThreadBackend::set_splits(const at::Tensor& output, const at::Tensor& input,
                               const std::vector<int64_t>& output_splits,
                               const std::vector<int64_t>& input_splits) {
  const auto fill = [&](const at::Tensor& tensor, const std::vector<int64_t>& splits,
                        std::vector<std::size_t>& bytes) {
    const auto ranks = static_cast<std::size_t>(getSize());
    const auto rows = tensor.dim() > 0 ? tensor.size(0) : 1;
    if (splits.empty()) {
      require(rows % getSize() == 0, Kind::all_to_all,
              std::to_string(rows) + " rows do not divide over the ranks; give splits");
      bytes.assign(ranks, tensor.nbytes() / ranks);
      return;
    }
    const auto sum = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
    require(splits.size() == ranks && sum == rows
                && std::all_of(splits.begin(), splits.end(), [](auto n) { return n >= 0; }),
            Kind::all_to_all, "the splits must be one per rank and add up to the rows");
    const auto row = rows > 0 ? tensor.nbytes() / static_cast<std::size_t>(rows) : 0;
    bytes.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i)
      bytes[i] = static_cast<std::size_t>(splits[i]) * row;
  };
  auto& slot = meeting_->slot(getRank());
  fill(output, output_splits, slot.out_splits);
  fill(input, input_splits, slot.in_splits);
}

ThreadBackend::Work ThreadBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                 std::vector<int64_t>& output_splits,
                                                 std::vector<int64_t>& input_splits,
                                                 const c10d::AllToAllOptions&) {
  std::vector<at::Tensor> inputs{input};
  only(inputs, Kind::all_to_all);
  require(output.is_contiguous() && output.scalar_type() == input.scalar_type(), Kind::all_to_all,
          "the output must be contiguous and of the input's type");
  set_splits(output, input, output_splits, input_splits);
  auto call = fingerprint_of(Kind::all_to_all, input);
  if (!output_splits.empty() || !input_splits.empty()) {
    call.dimensions = Fingerprint::kNoShape;
    call.shape = {};
  }
  run(call, input.contiguous(), output, &ThreadBackend::exchange_part);
  return done_work({output});
}

ThreadBackend::Work ThreadBackend::alltoall(std::vector<at::Tensor>& outputs,
                                            std::vector<at::Tensor>& inputs,
                                            const c10d::AllToAllOptions& options) {
  require(inputs.size() == static_cast<std::size_t>(getSize()) && outputs.size() == inputs.size(),
          Kind::all_to_all, "one input and one output per rank are taken");
  const at::NoGradGuard guard;
  std::vector<at::Tensor> rows;
  std::vector<int64_t> sent, taken;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].scalar_type() == inputs[0].scalar_type()
                && outputs[i].scalar_type() == inputs[0].scalar_type(),
            Kind::all_to_all, "all tensors must be of one type");
    rows.push_back(inputs[i].reshape({-1}));
    sent.push_back(inputs[i].numel());
    taken.push_back(outputs[i].numel());
  }
  auto input = at::cat(rows);
  auto output =
      at::empty({std::accumulate(taken.begin(), taken.end(), std::int64_t{0})}, input.options());
  alltoall_base(output, input, taken, sent, options);
  std::int64_t begin = 0;
  for (auto& tensor : outputs) {
    tensor.copy_(output.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
  return done_work(outputs);
}

ThreadBackend::Work ThreadBackend::barrier(const c10d::BarrierOptions&) {
  run(Fingerprint{}, {}, {}, &ThreadBackend::barrier_part);
  return done_work({});
}

} // namespace troupe::collectives
