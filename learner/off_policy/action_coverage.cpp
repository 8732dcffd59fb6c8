#include "learner/off_policy/action_coverage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <torch/types.h>

#include "env/random.hpp"

namespace troupe::learner {
namespace {

constexpr std::size_t kRecordedPairs = 4000;
constexpr std::size_t kAskedPairs = 1000;
constexpr double kCovered = 0.95; // fraction of the recorded pairs
constexpr double kLeastDeviation = 0.1;

std::vector<std::int64_t> all_step_rows(const RecordedSteps& steps) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < steps.episodes(); ++i) {
    const auto rows = steps.step_rows(i);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

/// Expresses columns in units of their standard deviations in `of`, weighted so that all columns
/// together count as one.
at::Tensor in_units(const at::Tensor& x, const at::Tensor& of) {
  const at::Tensor deviation = of.std(0, false).clamp_min(kLeastDeviation);
  return (x - of.mean(0)) / deviation / std::sqrt(static_cast<double>(x.size(1)));
}

/// The distance of each row of x [n] to the nearest row of y from another episode.
at::Tensor nearest(const at::Tensor& x, const at::Tensor& y, const at::Tensor& of_x,
                   const at::Tensor& of_y) {
  const at::Tensor same = of_x.unsqueeze(1) == of_y.unsqueeze(0);
  return std::get<0>(
      at::cdist(x, y).masked_fill(same, std::numeric_limits<double>::infinity()).min(1));
}

std::optional<double> outside(const RecordedSteps& steps, const at::Tensor& actions,
                              std::uint64_t seed) {
  if (steps.transitions().frame.type == env::ElementType::uint8 || steps.episodes() < 2)
    return std::nullopt;
  std::vector<std::int64_t> drawn = all_step_rows(steps);
  env::Random random(seed);
  const std::size_t count = std::min(kRecordedPairs, drawn.size());
  for (std::size_t i = 0; i < count; ++i)
    std::swap(drawn[i], drawn[i + random.bits() % (drawn.size() - i)]);
  drawn.resize(count);
  const at::Tensor index = at::tensor(drawn, at::kLong);
  const Observed seen = steps.observed(drawn);
  const at::Tensor plain = seen.vectors.defined()
                               ? at::cat({seen.frames.flatten(1), seen.vectors}, 1)
                               : seen.frames.flatten(1);
  const auto encoded = [&](const at::Tensor& all) {
    return encoded_actions(all.index_select(0, index), steps.transitions());
  };
  const at::Tensor done = encoded(steps.action());
  const at::Tensor state = in_units(plain, plain);
  const at::Tensor pairs = at::cat({state, in_units(done, done)}, 1).to(at::kDouble);
  const at::Tensor others = at::cat({state, in_units(encoded(actions), done)}, 1).to(at::kDouble);
  const at::Tensor episode = steps.episode().index_select(0, index);
  const auto asked = static_cast<std::int64_t>(std::min(kAskedPairs, count));
  const at::Tensor of_asked = episode.narrow(0, 0, asked);
  const at::Tensor usual = nearest(pairs.narrow(0, 0, asked), pairs, of_asked, episode);
  const at::Tensor found = nearest(others.narrow(0, 0, asked), pairs, of_asked, episode);
  return (found > usual.quantile(kCovered)).to(at::kDouble).mean().item<double>();
}

} // namespace

ActionCoverage action_coverage(const RecordedSteps& steps, const at::Tensor& actions,
                               std::uint64_t seed) {
  const at::Tensor rows = at::tensor(all_step_rows(steps), at::kLong);
  const at::Tensor apart =
      (steps.action().index_select(0, rows) - actions.index_select(0, rows)).abs();
  ActionCoverage made;
  double distance = 0;
  double agreement = 0;
  int continuous = 0;
  int choices = 0;
  for (std::int64_t i = 0; i < apart.size(1); ++i) {
    const at::Tensor number = apart.select(1, i);
    if (steps.transitions().choices_of(static_cast<std::size_t>(i)) > 0) {
      agreement += (number == 0).to(at::kDouble).mean().item<double>();
      ++choices;
    } else {
      distance += number.to(at::kDouble).mean().item<double>();
      ++continuous;
    }
  }
  if (continuous > 0)
    made.distance = distance / continuous;
  if (choices > 0)
    made.agreement = agreement / choices;
  made.outside = outside(steps, actions, seed);
  return made;
}

} // namespace troupe::learner
