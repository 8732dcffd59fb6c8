#include "learner/off_policy/fitted_evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "env/random.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/agents/parts/layers.hpp"

namespace troupe::learner {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr double kGradientNorm = 10;
constexpr std::int64_t kRowsAtOnce = 4096;

at::Tensor index_of(const Rows& rows) {
  return at::tensor(rows, at::kLong);
}

/// Mean and inverse standard deviation of columns, [2, columns]. A column that does not vary gets
/// the inverse 1.
at::Tensor moments_of(const at::Tensor& sum, const at::Tensor& squares, double count) {
  const at::Tensor mean = sum / count;
  const at::Tensor variance = (squares / count - mean * mean).clamp_min(0);
  const at::Tensor inverse = at::where(variance > 1e-10, variance.rsqrt(), at::ones_like(variance));
  return at::stack({mean, inverse}).to(at::kFloat);
}

/// Normalises numbers by their mean and standard deviation; leaves pictures unchanged.
class Normalised {
public:
  explicit Normalised(const RecordedSteps& steps) {
    Sums frames, vectors;
    Rows chunk;
    for (std::int64_t from = 0; from < steps.rows(); from += kRowsAtOnce) {
      chunk.resize(static_cast<std::size_t>(std::min(kRowsAtOnce, steps.rows() - from)));
      std::iota(chunk.begin(), chunk.end(), from);
      const Observed seen = steps.observed(chunk);
      if (seen.frames.scalar_type() != at::kByte)
        frames.add(seen.frames);
      if (seen.vectors.defined())
        vectors.add(seen.vectors);
    }
    const auto count = static_cast<double>(steps.rows());
    if (frames.sum.defined())
      frames_ = moments_of(frames.sum, frames.squares, count);
    if (vectors.sum.defined())
      vectors_ = moments_of(vectors.sum, vectors.squares, count);
  }

  Observed operator()(Observed seen) const {
    if (frames_.defined())
      seen.frames = (seen.frames - frames_[0]) * frames_[1];
    if (vectors_.defined())
      seen.vectors = (seen.vectors - vectors_[0]) * vectors_[1];
    return seen;
  }

private:
  struct Sums {
    at::Tensor sum, squares;
    void add(const at::Tensor& x) {
      const at::Tensor wide = x.to(at::kDouble);
      sum = sum.defined() ? sum + wide.sum(0) : wide.sum(0);
      squares = squares.defined() ? squares + (wide * wide).sum(0) : (wide * wide).sum(0);
    }
  };
  at::Tensor frames_, vectors_;
};

/// Adds the network's other inputs (time, action, memory) to the transitions' vectors.
replay::TransitionSpec with_action(replay::TransitionSpec transitions, const at::Tensor& memory) {
  std::int64_t numbers = 1 + (memory.defined() ? memory.size(1) : 0); // the time
  for (std::size_t i = 0; i < static_cast<std::size_t>(transitions.action_size); ++i)
    numbers += std::max<std::int64_t>(1, transitions.choices_of(i));
  transitions.vectors.push_back({"action, time, memory", env::ElementType::float32, {numbers}});
  return transitions;
}

class Values {
public:
  Values(const RecordedSteps& steps, const at::Tensor& memory, const FittedEvaluation& config)
      : steps_(steps),
        config_(config),
        normalised_(steps),
        memory_(in_units(memory)),
        torso_(layout_, "the evaluation", with_action(steps.transitions(), memory),
               {.encoder = encoder_of(steps.transitions()), .widths = config.layers}),
        head_(layout_, "value", torso_.features(), 1) {}

  const ParameterLayout& layout() const { return layout_; }
  at::Tensor initial(at::Generator& generator) const {
    const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
    torso_.initialise(layout_, flat, generator);
    head_.initialise(layout_, flat, generator);
    return flat;
  }
  /// Values [n] of `actions` [n, action size] at the rows.
  at::Tensor operator()(const Leaves& leaves, const Rows& rows, const at::Tensor& actions) const {
    Observed seen = normalised_(steps_.observed(rows));
    at::Tensor time = steps_.time().index_select(0, index_of(rows)).unsqueeze(1);
    time = config_.time_limit > 0 ? time / static_cast<double>(config_.time_limit) : time * 0;
    std::vector<at::Tensor> beside{encoded_actions(actions, steps_.transitions()), time};
    if (seen.vectors.defined())
      beside.insert(beside.begin(), seen.vectors);
    if (memory_.defined())
      beside.push_back(memory_.index_select(0, index_of(rows)));
    seen.vectors = at::cat(beside, 1);
    const at::Tensor features = torso_.forward(leaves, seen);
    // Normalised features have a common length, which limits the growth of values outside the
    // recorded data (Yue et al. 2023).
    return head_.forward(leaves, at::layer_norm(features, {torso_.features()})).squeeze(1);
  }

private:
  static at::Tensor in_units(const at::Tensor& memory) {
    if (!memory.defined())
      return {};
    const at::Tensor wide = memory.to(at::kDouble);
    const at::Tensor moments =
        moments_of(wide.sum(0), (wide * wide).sum(0), static_cast<double>(memory.size(0)));
    return (memory - moments[0]) * moments[1];
  }
  static std::string encoder_of(const replay::TransitionSpec& transitions) {
    const auto& shape = transitions.frame.shape;
    const std::int64_t least = least_picture("nature");
    return shape.size() == 3 && shape[1] >= least && shape[2] >= least ? "nature" : "minatar";
  }

  const RecordedSteps& steps_;
  const FittedEvaluation& config_;
  Normalised normalised_;
  at::Tensor memory_; // [rows, state size]
  ParameterLayout layout_;
  Torso torso_;
  Linear head_;
};

/// Mean and standard deviation of the recorded returns from every step. Values are learned in this
/// unit.
struct Unit {
  double mean = 0;
  double deviation = 1;

  Unit(const RecordedSteps& steps, double discount) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < steps.episodes(); ++i) {
      double rest = 0;
      for (std::int64_t row = steps.last_row(i) - 1; row >= steps.first_row(i); --row) {
        rest = steps.reward().const_data_ptr<float>()[row] + discount * rest;
        sum += rest;
        squares += rest * rest;
      }
    }
    const auto count = static_cast<double>(steps.steps());
    mean = sum / count;
    const double variance = squares / count - mean * mean;
    deviation = variance > 1e-12 ? std::sqrt(variance) : 1;
  }
};

/// Bounds of the value at each row if no reward exceeds the recorded ones; 0 at the time limit.
/// Without these bounds, wrong values outside the recorded data would diverge.
struct Bounds {
  at::Tensor least, most; // [rows]

  Bounds(const RecordedSteps& steps, const FittedEvaluation& config) {
    const auto sum = [&](const at::Tensor& count) { // of `count` discounts
      return config.discount < 1 ? (1 - at::pow(config.discount, count)) / (1 - config.discount)
                                 : count;
    };
    const at::Tensor rewards = config.time_limit > 0
                                   ? sum(static_cast<double>(config.time_limit) - steps.time())
                                   : at::full_like(steps.time(), 1 / (1 - config.discount));
    least = rewards * std::min(0.0, steps.reward().min().item<double>());
    most = rewards * std::max(0.0, steps.reward().max().item<double>());
  }

  at::Tensor limit(const at::Tensor& values, const Rows& rows) const {
    const at::Tensor index = index_of(rows);
    return at::minimum(at::maximum(values, least.index_select(0, index)),
                       most.index_select(0, index));
  }
};

void check_fit(const RecordedSteps& steps, const FittedEvaluation& config) {
  if (config.time_limit == 0 && config.discount >= 1)
    throw std::invalid_argument("discount is 1, but the environment has no time limit, so "
                                "returns have no bound; give --discount below 1");
  if (config.time_limit > 0 && steps.longest() > config.time_limit)
    throw std::invalid_argument("a recorded episode has " + std::to_string(steps.longest())
                                + " steps, but the environment cuts them at "
                                + std::to_string(config.time_limit)
                                + "; use the environment block with which it was recorded");
}

/// The network during training.
class Fit {
public:
  Fit(const RecordedSteps& steps, const EvaluatedPolicy& policy, const FittedEvaluation& config)
      : steps_(steps),
        actions_(policy.actions),
        config_(config),
        unit_(steps, config.discount),
        bounds_(steps, config),
        network_(steps, policy.memory, config) {
    ReplicaContext context(nullptr, config.seed);
    context.set_learning_rates({.shape = ScheduleShape::polynomial, .total_steps = config.updates});
    at::Generator generator = at::detail::createCPUGenerator(config.seed);
    group_.declare(network_.layout());
    group_.build(context, network_.initial(generator),
                 {.learning_rate = config.learning_rate, .gradient_norm = kGradientNorm});
    leaves_ = leaves_of(group_.layout(), group_.flat(), group_.gradient());
    targets_ = leaves_of(group_.layout(), group_.target());
  }

  /// Makes update number `update` from the steps that start at these rows.
  void learn(const Rows& rows, std::int64_t update) {
    const at::Tensor index = index_of(rows);
    const at::Tensor target = target_of(rows, index, drawn(update));
    double loss = 0;
    {
      at::AutoGradMode with_gradient(true);
      const at::Tensor error =
          network_(leaves_, rows, steps_.action().index_select(0, index)) - target;
      const at::Tensor mean = (error * error).mean();
      group_.gradient().zero_();
      mean.backward();
      loss = mean.item<double>();
    }
    at::NoGradGuard no_gradient;
    group_.step("loss of the evaluation", loss, update);
    group_.average_target(config_.target_update, 1);
  }

  /// The values at all rows.
  FittedValues values() const {
    FittedValues made;
    Rows rows;
    for (std::int64_t from = 0; from < steps_.rows(); from += kRowsAtOnce) {
      rows.resize(static_cast<std::size_t>(std::min(kRowsAtOnce, steps_.rows() - from)));
      std::iota(rows.begin(), rows.end(), from);
      at::Tensor sum;
      for (const at::Tensor& draw : actions_) {
        const at::Tensor found = values(rows, draw);
        sum = sum.defined() ? sum + found : found;
      }
      append(sum / static_cast<double>(actions_.size()), made.policy);
      append(values(rows, steps_.action()), made.recorded);
    }
    return made;
  }

private:
  const at::Tensor& drawn(std::int64_t update) const {
    return actions_[static_cast<std::size_t>(update) % actions_.size()];
  }
  static void append(const at::Tensor& values, std::vector<double>& out) {
    const at::Tensor wide = values.to(at::kDouble).contiguous();
    out.insert(out.end(), wide.const_data_ptr<double>(),
               wide.const_data_ptr<double>() + wide.numel());
  }
  /// The target network's values [n] of the draw `actions` [rows, action size] at the rows.
  at::Tensor values(const Rows& rows, const at::Tensor& actions) const {
    at::NoGradGuard no_gradient;
    const at::Tensor found = network_(targets_, rows, actions.index_select(0, index_of(rows)));
    return bounds_.limit(found * unit_.deviation + unit_.mean, rows);
  }
  /// The regression target, in the unit of the returns.
  at::Tensor target_of(const Rows& rows, const at::Tensor& index, const at::Tensor& draw) const {
    Rows next = rows;
    for (std::int64_t& row : next)
      ++row;
    const at::Tensor discount = steps_.discount().index_select(0, index) * config_.discount;
    const at::Tensor sum = steps_.reward().index_select(0, index) + discount * values(next, draw);
    return (sum - unit_.mean) / unit_.deviation;
  }

  const RecordedSteps& steps_;
  std::span<const at::Tensor> actions_; // draws
  const FittedEvaluation& config_;
  Unit unit_;
  Bounds bounds_;
  Values network_;
  ParameterGroup group_;
  Leaves leaves_, targets_;
};

} // namespace

FittedValues fitted_values(const RecordedSteps& steps, const EvaluatedPolicy& policy,
                           std::span<const std::int64_t> episodes, const FittedEvaluation& config,
                           const std::function<bool()>& stopped) {
  check_fit(steps, config);
  Fit fit(steps, policy, config);
  Rows pool;
  for (const std::int64_t episode : episodes) {
    const Rows more = steps.step_rows(episode);
    pool.insert(pool.end(), more.begin(), more.end());
  }
  env::Random random(config.seed);
  Rows rows(static_cast<std::size_t>(config.batch_size));
  for (std::int64_t update = 1; update <= config.updates && !(stopped && stopped()); ++update) {
    for (std::int64_t& row : rows)
      row = pool[random.bits() % pool.size()];
    fit.learn(rows, update);
  }
  return fit.values();
}

} // namespace troupe::learner
