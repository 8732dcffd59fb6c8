#include "learner/transparent/process.hpp"

#include <cstdio>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "env/split_mix.hpp"
#include "env/text/joined.hpp"
#include "learner/transparent/equal_tensors.hpp"
#include "learner/transparent/fingerprint.hpp"
#include "learner/transparent/share.hpp"

namespace troupe::learner::transparent {
namespace {

using collectives::ReduceOp;

std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.param_groups())
    for (const auto& parameter : group.params())
      if (parameter.defined() && (parameter.requires_grad() || parameter.grad().defined()))
        all.push_back(parameter);
  return all;
}

std::size_t parameter_count(const torch::optim::Optimizer& optimizer) {
  std::size_t count = 0;
  for (const auto& group : optimizer.param_groups())
    count += group.params().size();
  return count;
}

at::Generator default_generator() {
  return at::globalContext().defaultGenerator(c10::DeviceType::CPU);
}

at::Tensor state_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

std::uint64_t mixed(std::uint64_t seed, int rank) {
  return env::mix_bits(seed + env::kSplitMixStep * static_cast<std::uint64_t>(rank));
}

} // namespace

TransparentProcess::TransparentProcess(std::unique_ptr<collectives::Communicator> communicator,
                                       GradientAverage::MakeChannel another, Settings settings)
    : communicator_(std::move(communicator)),
      another_(std::move(another)),
      settings_(std::move(settings)) {
  auto state = state_of(default_generator());
  communicator_->broadcast(state, 0);
  set_state(default_generator(), state);
}

TransparentProcess::~TransparentProcess() = default;

int TransparentProcess::rank() const {
  return communicator_->rank();
}

int TransparentProcess::size() const {
  return communicator_->size();
}

void TransparentProcess::say(const std::string& text) const {
  if (rank() == 0)
    std::fprintf(stderr, "troupe transparent: %s\n", text.c_str());
}

TransparentProcess::Tracked& TransparentProcess::track(const torch::optim::Optimizer& optimizer,
                                                       bool again) {
  auto [place, added] = optimizers_.try_emplace(&optimizer);
  if (again) // the optimizer that was at this address has been destroyed
    std::erase_if(gradients_, [old = place->second.gradients](const auto& one) {
      return one.get() == old && !one->has_channel();
    });
  if (added || again)
    place->second = Tracked{.number = ++constructed_, .kind = {}};
  return place->second;
}

bool TransparentProcess::share_parameters(torch::optim::Optimizer& optimizer, Tracked& tracked) {
  tracked.parameters = parameter_count(optimizer);
  const bool differed = broadcast_from_rank_0(parameters_of(optimizer), *communicator_);
  auto anywhere = at::full({1}, differed ? 1.0f : 0.0f, at::kFloat);
  communicator_->all_reduce(anywhere, ReduceOp::max);
  return anywhere.item<float>() > 0;
}

void TransparentProcess::buffer(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized())
    buffers_.emplace_back(tensor.getIntrusivePtr());
}

void TransparentProcess::share_buffers() {
  // Buffers of destroyed modules.
  std::erase_if(buffers_, [](const auto& held) { return held.expired(); });
  std::vector<at::Tensor> alive;
  for (const auto& held : buffers_)
    if (auto implementation = held.lock())
      alive.emplace_back(std::move(implementation));
  if (!alive.empty())
    broadcast_from_rank_0(alive, *communicator_);
}

GradientAverage& TransparentProcess::gradients_of(Tracked& tracked) {
  if (!tracked.gradients) {
    const bool early = settings_.overlap && averages_ < kChannels;
    ++averages_;
    tracked.gradients = gradients_
                            .emplace_back(std::make_unique<GradientAverage>(
                                *communicator_, early ? another_ : nullptr))
                            .get();
  }
  return *tracked.gradients;
}

void TransparentProcess::group_added(torch::optim::Optimizer& optimizer) {
  // The first group of an optimizer is added by its constructor.
  Tracked& tracked = track(optimizer, optimizer.param_groups().size() == 1);
  share_parameters(optimizer, tracked);
  share_buffers();
}

void TransparentProcess::begin_training() {
  training_ = true;
  if (rank() == 0)
    return;
  at::manual_seed(mixed(fingerprint(state_of(default_generator())), rank()));
}

std::uint64_t TransparentProcess::shifted(const void* generator, std::uint64_t seed) const {
  if (!training_ || rank() == 0)
    return seed;
  const auto* implementation = static_cast<const c10::GeneratorImpl*>(generator);
  const auto of_device = at::globalContext().defaultGenerator(implementation->device());
  return of_device.unsafeGetGeneratorImpl() == implementation ? mixed(seed, rank()) : seed;
}

void TransparentProcess::compare_parameters(torch::optim::Optimizer& optimizer,
                                            const Tracked& tracked) {
  const auto others = ranks_that_differ(parameters_of(optimizer), *communicator_);
  if (others.empty())
    return;
  const std::string reason =
      "before step " + std::to_string(tracked.steps + 1) + " of optimizer "
      + std::to_string(tracked.number) + " (" + tracked.kind + ") the parameters of rank "
      + env::joined(others)
      + " were no longer those of rank 0; the program itself changes them differently by rank "
        "(random numbers, files, threads): make the changes equal, or switch the comparison off "
        "with --check-every 0";
  throw collectives::CollectiveError(reason);
}

at::Tensor TransparentProcess::step(torch::optim::Optimizer& optimizer, const Closure& closure,
                                    const std::string& kind,
                                    const std::function<at::Tensor(Closure)>& original) {
  Tracked& tracked = track(optimizer, false);
  tracked.kind = kind;
  try {
    bool from_rank_0 = false;
    if (tracked.steps == 0 || tracked.parameters != parameter_count(optimizer)) {
      from_rank_0 = share_parameters(optimizer, tracked);
      if (from_rank_0)
        say("the parameters of optimizer " + std::to_string(tracked.number) + " (" + kind
            + ") differed between the ranks before its step " + std::to_string(tracked.steps + 1)
            + "; they are rank 0's now, and so are the gradients of this step");
    } else if (settings_.check_every > 0 && tracked.steps % settings_.check_every == 0) {
      compare_parameters(optimizer, tracked);
    }
    if (!training_)
      begin_training();
    const auto average = [&] {
      gradients_of(tracked).average(parameters_of(optimizer), from_rank_0);
      if (settings_.buffers == Buffers::rank0)
        share_buffers();
    };
    Closure averaged;
    if (closure) {
      averaged = [&] {
        auto loss = closure().detach().clone();
        average();
        auto mean = loss.to(at::kCPU);
        communicator_->all_reduce(mean, ReduceOp::mean);
        return loss.copy_(mean);
      };
    } else {
      average();
    }
    auto result = original(std::move(averaged));
    ++tracked.steps;
    ++steps_;
    return result;
  } catch (const collectives::CollectiveError& error) {
    throw collectives::CollectiveError("step " + std::to_string(tracked.steps + 1)
                                       + " of optimizer " + std::to_string(tracked.number) + " ("
                                       + kind + "): " + error.what()
                                       + " (a barrier there: that rank's program has ended)");
  }
}

std::optional<std::vector<std::size_t>> TransparentProcess::next(std::size_t batch_size,
                                                                 const Sampler& original) {
  if (!at::GradMode::is_enabled() && settings_.evaluation == Evaluation::whole)
    return original(batch_size);
  const auto factor =
      settings_.batch == Batch::keep ? static_cast<std::size_t>(size()) : std::size_t{1};
  const auto batch = original(batch_size * factor);
  if (!batch)
    return std::nullopt;
  auto share = share_of(*batch, rank(), size(), settings_.tail);
  if (share.empty())
    return std::nullopt;
  return share;
}

void TransparentProcess::reset(const std::function<void()>& original) {
  if (!at::GradMode::is_enabled() && settings_.evaluation == Evaluation::whole) {
    original();
    return;
  }
  const auto mine = state_of(default_generator());
  auto shared = mine.clone();
  communicator_->broadcast(shared, 0);
  set_state(default_generator(), shared);
  original();
  if (training_ && rank() != 0)
    set_state(default_generator(), mine);
}

void TransparentProcess::stream() {
  if (!stream_said_)
    say("a stream is read: every rank reads all of it, because a stream's sampler has no samples "
        "to share; let the program draw its part at random, or use a data set with a size");
  stream_said_ = true;
}

void TransparentProcess::end() {
  if (constructed_ > 0 && steps_ == 0)
    say("no step of a LibTorch optimizer was seen: nothing was averaged; an optimizer class that "
        "the program defines cannot be seen, and with --batch divide a loader's drop_last drops "
        "every batch");
  try {
    communicator_->barrier();
  } catch (const collectives::CollectiveError& error) {
    throw collectives::CollectiveError(
        "this rank's program ended after " + std::to_string(steps_)
        + " steps, but another rank continues; where a program stops by its own "
          "loss, let it stop after a number of steps instead: "
        + error.what());
  }
  for (const auto& gradients : gradients_)
    gradients->drain();
}

void TransparentProcess::abort(const std::string& reason) {
  communicator_->abort(reason);
}

} // namespace troupe::learner::transparent
