#include "replay/table/faded_selector.hpp"

#include <algorithm>
#include <cmath>

#include "replay/table/priority_weight.hpp"

namespace troupe::replay {

FadedSelector::FadedSelector(const SelectorConfig& config)
    : config_(config),
      fading_(static_cast<std::size_t>(
          std::ceil(std::log(config.least_fade) / std::log(config.fade)))) {}

double FadedSelector::growth(std::size_t position) const {
  return std::pow(config_.fade, -static_cast<double>(position));
}

double FadedSelector::young_scale() const {
  return 1 / growth(young_.size() - 1);
}

void FadedSelector::insert(Place place, double priority) {
  if (place >= where_.size())
    where_.resize(std::max<std::size_t>(std::size_t{place} + 1, 2 * where_.size()));
  where_[place] = {.old = false, .position = static_cast<std::uint32_t>(young_.size())};
  const double weight = priority_weight(priority, config_.exponent);
  young_tree_.push_back(weight * growth(young_.size()));
  young_.push_back({place, weight});
  if (young_.size() - first_ > fading_)
    retire();
  if (first_ > fading_)
    compact();
}

void FadedSelector::retire() {
  const Young one = young_[first_];
  young_tree_.set(first_++, 0);
  where_[one.place] = {.old = true, .position = static_cast<std::uint32_t>(old_.size())};
  old_.push_back(one.place);
  old_tree_.push_back(one.weight);
}

void FadedSelector::compact() {
  young_.erase(young_.begin(), young_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
  young_tree_ = {};
  for (std::size_t i = 0; i < young_.size(); ++i) {
    where_[young_[i].place].position = static_cast<std::uint32_t>(i);
    young_tree_.push_back(young_[i].weight * growth(i));
  }
}

void FadedSelector::erase(Place place) {
  const Where at = where_[place];
  if (!at.old) {
    young_tree_.set(first_++, 0);
    if (first_ > fading_)
      compact();
    return;
  }
  const double last = old_tree_.weight(old_.size() - 1);
  old_[at.position] = old_.back();
  where_[old_.back()].position = at.position;
  old_tree_.set(at.position, last);
  old_.pop_back();
  old_tree_.pop_back();
}

void FadedSelector::update(Place place, double priority) {
  const double weight = priority_weight(priority, config_.exponent);
  const Where at = where_[place];
  if (at.old) {
    old_tree_.set(at.position, weight);
  } else {
    young_[at.position].weight = weight;
    young_tree_.set(at.position, weight * growth(at.position));
  }
}

Selected FadedSelector::select(Random& random) const {
  const double scale = young_scale();
  const double young = young_tree_.total() * scale;
  const double old = old_tree_.total() * config_.least_fade;
  if (!(young + old > 0)) {
    const std::size_t any = random.below(size());
    return {any < old_.size() ? old_[any] : young_[first_ + any - old_.size()].place,
            1.0 / static_cast<double>(size())};
  }
  const double value = random.unit() * (young + old);
  if (!(old > 0) || value < young) {
    const std::size_t at = young_tree_.find(value / scale);
    return {young_[at].place, young_tree_.weight(at) * scale / (young + old)};
  }
  const std::size_t at = old_tree_.find((value - young) / config_.least_fade);
  return {old_[at], old_tree_.weight(at) * config_.least_fade / (young + old)};
}

double FadedSelector::total() const {
  const double sum = young_tree_.total() * young_scale() + old_tree_.total() * config_.least_fade;
  return sum > 0 ? sum : kNoWeight * static_cast<double>(size());
}

void FadedSelector::order(std::vector<Place>& out) const {
  out = old_;
  for (std::size_t i = first_; i < young_.size(); ++i)
    out.push_back(young_[i].place);
}

double fade_of_shard(double fade, int shards) {
  return std::pow(fade, shards);
}

} // namespace troupe::replay
