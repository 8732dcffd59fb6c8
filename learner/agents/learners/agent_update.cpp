#include "learner/agents/learners/agent_update.hpp"

#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/learners/parameter_group.hpp"
#include "learner/nn/activation_probe.hpp"
#include "learner/nn/kernels/normal.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kSlots = 48;   // maximum number of values that an update reports
constexpr std::int64_t kNumbers = 24; // maximum number of values from the host
constexpr std::int64_t kWarmUp = 3;   // first updates, in which libraries and tapes allocate memory

at::Tensor pinned_like(const at::Tensor& tensor, bool pinned) {
  return at::empty(tensor.sizes(), tensor.options().pinned_memory(pinned));
}

bool alike(const TensorMap& one, const TensorMap& other) {
  if (one.size() != other.size())
    return false;
  for (const auto& [name, tensor] : one) {
    const auto same = other.find(name);
    if (same == other.end() || same->second.sizes() != tensor.sizes()
        || same->second.scalar_type() != tensor.scalar_type())
      return false;
  }
  return true;
}

} // namespace

void AgentUpdate::build(const at::TensorOptions& options, Random& random, bool captured) {
  *this = AgentUpdate();
  options_ = options;
  random_ = &random;
  captured_ = captured;
}

/// Copies the batch to the captured memory, which is allocated for batches of this shape.
void AgentUpdate::bring(const TensorMap& batch) {
  if (!alike(batch, batch_)) {
    variants_.clear();
    batch_.clear();
    const at::Device device = options_.device();
    for (const auto& [name, tensor] : batch)
      batch_[name] = at::empty(tensor.sizes(), tensor.options().device(device));
    const std::int64_t rows = batch.begin()->second.size(0);
    report_ = at::zeros({kSlots + rows}, at::TensorOptions(at::kDouble).device(device));
    device_numbers_ = at::zeros({kNumbers}, at::TensorOptions(at::kFloat).device(device));
    host_numbers_ = at::empty({kNumbers}, at::TensorOptions().pinned_memory(device.is_cuda()));
    problem_ = at::zeros({1}, device_numbers_.options());
  }
  for (const auto& [name, tensor] : batch)
    batch_.at(name).copy_(tensor, /*non_blocking=*/tensor.is_pinned());
}

void AgentUpdate::run(const Body& body) {
  next_input_ = next_number_ = next_step_ = next_told_ = 0;
  next_slot_ = 0;
  problem_.zero_();
  body(batch_);
}

/// Updates all values that a replay reads from the host.
void AgentUpdate::refill() {
  for (Input& input : current_->inputs) {
    input.host.copy_(input.draw());
    input.device.copy_(input.host, /*non_blocking=*/true);
  }
  auto* numbers = host_numbers_.mutable_data_ptr<float>();
  for (const auto& value : current_->numbers)
    *numbers++ = static_cast<float>(value());
  device_numbers_.copy_(host_numbers_, /*non_blocking=*/true);
}

void AgentUpdate::capture(const Body& body) {
  capturing_ = true;
  try {
    current_->graph = std::make_unique<StepGraph>(options_.device(), [&] { run(body); });
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        std::string(
            "the update cannot become a CUDA graph: it must not read a tensor's value (item(), "
            "cpu()) and may copy from the host only by in_update(): ")
        + error.what());
  }
  capturing_ = false;
}

void AgentUpdate::make(const TensorMap& batch, int variant, std::int64_t number, const Body& body) {
  number_ = number;
  rows_ = at::Tensor();
  if (!captured_)
    return body(batch);
  bring(batch);
  current_ = &variants_[variant];
  const bool seen = ActivationProbe::active() != nullptr; // the probe reads the outputs of layers
  if (!current_->graph && current_->made >= kWarmUp && !seen
      && StepGraph::unavailable_reason(options_.device()).empty())
    capture(body);
  ++current_->made;
  if (current_->graph && !seen) {
    refill();
    current_->graph->replay();
  } else {
    run(body);
  }
  finish();
}

void AgentUpdate::forget_captures() {
  variants_.clear();
  current_ = nullptr;
}

void AgentUpdate::finish() {
  const at::Tensor report = report_.cpu(); // the only read by the host
  const auto* said = report.const_data_ptr<double>();
  for (const Step& step : current_->steps)
    step.group->finish_on_device(step.loss_name, said[step.loss], said[step.norm], number_);
  for (const Told& told : current_->told)
    metrics_[told.metric] = said[told.slot];
  if (current_->rows > 0)
    rows_ = report.narrow(0, kSlots, current_->rows).clone();
}

std::int64_t AgentUpdate::report(const at::Tensor& value) {
  if (next_slot_ == kSlots)
    throw std::logic_error("an update reports more than " + std::to_string(kSlots) + " numbers");
  report_.select(0, next_slot_).copy_(value.squeeze());
  return next_slot_++;
}

at::Tensor AgentUpdate::input(std::function<at::Tensor()> draw) {
  auto& inputs = current_->inputs;
  const std::size_t index = next_input_++;
  if (capturing_)
    return inputs.at(index).device;
  at::Tensor drawn = draw();
  if (index == inputs.size())
    inputs.push_back(
        {.draw = std::move(draw),
         .host = pinned_like(drawn, options_.device().is_cuda()),
         .device = at::empty(drawn.sizes(), drawn.options().device(options_.device()))});
  return inputs[index].device.copy_(drawn);
}

at::Tensor AgentUpdate::normal(at::IntArrayRef sizes) {
  const auto draw = [random = random_, shape = sizes.vec()] {
    return learner::normal(*random, shape);
  };
  return (captured_ ? input(draw) : draw()).to(options_);
}

PictureShifts AgentUpdate::shifts(std::int64_t pictures, int pixels) {
  const auto draw = [random = random_, pictures, pixels] {
    std::vector<Shift> drawn(static_cast<std::size_t>(pictures));
    draw_shifts(*random, pixels, drawn);
    return drawn;
  };
  if (!captured_)
    return {.drawn = draw(), .offsets = {}};
  return {.drawn = {}, .offsets = input([draw] { return offsets_of(draw()); })};
}

at::Tensor AgentUpdate::number_slot(std::function<double()> value) {
  auto& numbers = current_->numbers;
  const std::size_t index = next_number_++;
  if (index >= static_cast<std::size_t>(kNumbers))
    throw std::logic_error("an update gets more than " + std::to_string(kNumbers) + " numbers");
  if (index == numbers.size())
    numbers.push_back(std::move(value));
  at::Tensor slot = device_numbers_.narrow(0, static_cast<std::int64_t>(index), 1);
  if (!capturing_)
    slot.fill_(numbers[index]());
  return slot;
}

at::Tensor AgentUpdate::number(std::function<double()> value) {
  if (!captured_)
    return at::scalar_tensor(value(), options_);
  return number_slot(std::move(value)).select(0, 0).to(options_);
}

void AgentUpdate::step(ParameterGroup& group, const char* loss_name, const at::Tensor& loss) {
  if (!captured_)
    return group.step(loss_name, loss.item<double>(), number_);
  const at::Tensor count =
      number_slot([&group] { return static_cast<double>(group.adam().steps() + 1); });
  at::Tensor rate;
  if (group.rate_changes())
    rate = number_slot([this, &group] { return group.rate_of(number_); }).select(0, 0);
  const at::Tensor norm = group.step_on_device(loss, problem_, count, rate);
  const std::int64_t loss_slot = report(loss), norm_slot = report(norm);
  if (next_step_++ == current_->steps.size())
    current_->steps.push_back({&group, loss_name, loss_slot, norm_slot});
}

void AgentUpdate::tell(const char* metric, const at::Tensor& value) {
  if (!captured_) {
    metrics_[metric] = value.item<double>();
    return;
  }
  const std::int64_t slot = report(value);
  if (next_told_++ == current_->told.size())
    current_->told.push_back({metric, slot});
}

void AgentUpdate::tell_rows(const at::Tensor& values) {
  if (!captured_) {
    rows_ = values.to(at::kCPU, at::kDouble);
    return;
  }
  current_->rows = values.size(0);
  report_.narrow(0, kSlots, values.size(0)).copy_(values);
}

} // namespace troupe::learner
