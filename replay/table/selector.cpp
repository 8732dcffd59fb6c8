#include "replay/table/selector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "replay/table/config_rule.hpp"
#include "replay/table/faded_selector.hpp"
#include "replay/table/priority_weight.hpp"
#include "replay/table/sum_tree.hpp"

namespace troupe::replay {

namespace {

using Place = std::uint32_t;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr double kMaxExponent = 10;
constexpr double kLeastFade = 0.5; // lower limit of `fade`
constexpr double kLeastFloor = 1e-6;
constexpr std::size_t kSideBySide = 32; // number of interleaved tree searches
constexpr std::size_t kUpdatedAtOnce = 256;

/// Grows `values` to contain `place`, at least doubling its size so that growth is rare.
template <class T>
void reach(std::vector<T>& values, Place place, T fill) {
  if (place >= values.size())
    values.resize(std::max<std::size_t>(std::size_t{place} + 1, 2 * values.size()), fill);
}

/// A set of places at positions 0 to size - 1. When one is erased, the last one fills the gap.
class DenseSet {
public:
  std::uint32_t insert(Place place) {
    reach(position_, place, kNone);
    position_[place] = static_cast<std::uint32_t>(places_.size());
    places_.push_back(place);
    return position_[place];
  }
  /// Returns the position that the last place has moved to.
  std::uint32_t erase(Place place) {
    const std::uint32_t gap = position_[place];
    places_[gap] = places_.back();
    position_[places_[gap]] = gap;
    position_[place] = kNone;
    places_.pop_back();
    return gap;
  }
  std::uint32_t position(Place place) const { return position_[place]; }
  Place at(std::size_t position) const { return places_[position]; }
  const Place* address(std::size_t position) const { return &places_[position]; }
  std::size_t size() const { return places_.size(); }
  const std::vector<Place>& places() const { return places_; }

private:
  std::vector<Place> places_;
  std::vector<std::uint32_t> position_; // by place
};

class Uniform : public Selector {
public:
  void insert(Place place, double) override { set_.insert(place); }
  void erase(Place place) override { set_.erase(place); }
  Selected select(Random& random) const override {
    return {set_.at(random.below(set_.size())), 1.0 / static_cast<double>(set_.size())};
  }
  std::size_t size() const override { return set_.size(); }
  void order(std::vector<Place>& out) const override { out = set_.places(); }

private:
  DenseSet set_;
};

class Prioritized : public Selector {
public:
  explicit Prioritized(double exponent) : exponent_(exponent) {}

  void insert(Place place, double priority) override {
    set_.insert(place);
    tree_.push_back(priority_weight(priority, exponent_));
  }
  void erase(Place place) override {
    const double last = tree_.weight(tree_.size() - 1);
    const std::uint32_t gap = set_.erase(place);
    if (gap + 1U < tree_.size())
      tree_.set(gap, last);
    tree_.pop_back();
  }
  void update(Place place, double priority) override {
    tree_.set(set_.position(place), priority_weight(priority, exponent_));
  }
  void update(std::span<const Place> places, std::span<const double> priorities) override {
    std::uint32_t positions[kUpdatedAtOnce];
    double weights[kUpdatedAtOnce];
    for (std::size_t first = 0; first < places.size(); first += kUpdatedAtOnce) {
      const std::size_t count = std::min(kUpdatedAtOnce, places.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        positions[i] = set_.position(places[first + i]);
        weights[i] = priority_weight(priorities[first + i], exponent_);
      }
      tree_.set({positions, count}, {weights, count});
    }
  }
  Selected select(Random& random) const override {
    const double total = tree_.total();
    if (!(total > 0))
      return {set_.at(random.below(set_.size())), 1.0 / static_cast<double>(set_.size())};
    const std::size_t position = tree_.find(random.unit() * total);
    return {set_.at(position), tree_.weight(position) / total};
  }
  void select(Random& random, std::span<Selected> out) const override {
    const double total = tree_.total();
    if (!(total > 0)) {
      Selector::select(random, out);
      return;
    }
    double values[kSideBySide];
    std::uint32_t positions[kSideBySide];
    for (std::size_t first = 0; first < out.size(); first += kSideBySide) {
      const std::size_t count = std::min(kSideBySide, out.size() - first);
      for (std::size_t i = 0; i < count; ++i)
        values[i] = random.unit() * total;
      tree_.find({values, count}, {positions, count});
      for (std::size_t i = 0; i < count; ++i)
        __builtin_prefetch(set_.address(positions[i]));
      for (std::size_t i = 0; i < count; ++i)
        out[first + i] = {set_.at(positions[i]), tree_.weight(positions[i]) / total};
    }
  }
  std::size_t size() const override { return set_.size(); }
  double total() const override {
    return tree_.total() > 0 ? tree_.total() : kNoWeight * static_cast<double>(size());
  }
  void order(std::vector<Place>& out) const override { out = set_.places(); }

private:
  double exponent_;
  DenseSet set_;
  SumTree tree_; // by position in the set
};

/// A list in insertion order, linked through arrays indexed by place.
class Queue : public Selector {
public:
  explicit Queue(bool newest) : newest_(newest) {}

  void insert(Place place, double) override {
    reach(links_, place, Links{});
    links_[place] = {last_, kNone};
    (last_ == kNone ? first_ : links_[last_].next) = place;
    last_ = place;
    ++size_;
  }
  void erase(Place place) override {
    const Links gone = links_[place];
    (gone.before == kNone ? first_ : links_[gone.before].next) = gone.next;
    (gone.next == kNone ? last_ : links_[gone.next].before) = gone.before;
    --size_;
  }
  Selected select(Random&) const override { return {newest_ ? last_ : first_, 1}; }
  std::size_t size() const override { return size_; }
  void order(std::vector<Place>& out) const override {
    out.clear();
    for (Place place = first_; place != kNone; place = links_[place].next)
      out.push_back(place);
  }

private:
  struct Links {
    Place before = kNone;
    Place next = kNone;
  };
  bool newest_;
  std::vector<Links> links_; // by place
  Place first_ = kNone;
  Place last_ = kNone;
  std::size_t size_ = 0;
};

/// A binary heap in an array. With `sign` -1, the greatest priority comes first.
class Heap : public Selector {
public:
  explicit Heap(double sign) : sign_(sign) {}

  void insert(Place place, double priority) override {
    reach(position_, place, kNone);
    heap_.push_back({sign_ * priority, serial_++, place});
    position_[place] = static_cast<std::uint32_t>(heap_.size() - 1);
    rise(heap_.size() - 1);
  }
  void erase(Place place) override {
    const std::size_t gap = position_[place];
    const Entry last = heap_.back();
    heap_.pop_back();
    position_[place] = kNone;
    if (gap == heap_.size())
      return;
    put(gap, last);
    settle(gap);
  }
  void update(Place place, double priority) override {
    heap_[position_[place]].priority = sign_ * priority;
    settle(position_[place]);
  }
  Selected select(Random&) const override { return {heap_.front().place, 1}; }
  std::size_t size() const override { return heap_.size(); }
  void order(std::vector<Place>& out) const override {
    std::vector<Entry> sorted = heap_;
    std::sort(sorted.begin(), sorted.end(),
              [](const Entry& a, const Entry& b) { return a.serial < b.serial; });
    out.clear();
    for (const Entry& entry : sorted)
      out.push_back(entry.place);
  }

private:
  struct Entry {
    double priority = 0;
    std::uint64_t serial = 0; // number of the insertion
    Place place = 0;

    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : serial < other.serial;
    }
  };

  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.place] = static_cast<std::uint32_t>(at);
  }
  void settle(std::size_t at) { sink(rise(at)); }
  std::size_t rise(std::size_t at) {
    const Entry entry = heap_[at];
    for (; at > 0 && entry < heap_[(at - 1) / 2]; at = (at - 1) / 2)
      put(at, heap_[(at - 1) / 2]);
    put(at, entry);
    return at;
  }
  void sink(std::size_t at) {
    const Entry entry = heap_[at];
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child])
        ++child;
      if (!(heap_[child] < entry))
        break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, entry);
  }

  double sign_;
  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_; // by place
  std::uint64_t serial_ = 0;
};

constexpr const char* kSelectors[] = {"uniform", "prioritized", "fifo",
                                      "lifo",    "min_heap",    "max_heap"};

} // namespace

const char* selector_name(SelectorKind kind) {
  return name_of(kSelectors, kind);
}

SelectorKind selector_named(const std::string& name) {
  return value_named<SelectorKind>(kSelectors, name, "selector");
}

void check(const SelectorConfig& config, const std::string& key) {
  if (selector_name(config.kind) == std::string("unknown"))
    throw std::invalid_argument(key + " is of kind " + std::to_string(static_cast<int>(config.kind))
                                + " but must be one of uniform, prioritized, fifo, lifo, "
                                  "min_heap and max_heap");
  const auto must_be = [&key](const char* what, double value, double least, double most,
                              const char* hint) {
    if (value >= least && value <= most)
      return;
    std::ostringstream text;
    text << key << "'s " << what << " is " << value << " but must be " << least << " to " << most
         << hint;
    throw std::invalid_argument(text.str());
  };
  must_be("priority exponent", config.exponent, 0, kMaxExponent,
          "; 0 makes all positive priorities equal, 1 uses them unchanged");
  must_be("priority fade", config.fade, kLeastFade, 1,
          ", the factor for each item inserted since; 1: items do not fade");
  must_be("least fade", config.least_fade, kLeastFloor, 1, "");
  if (config.fade < 1 && config.kind != SelectorKind::prioritized)
    throw std::invalid_argument(key + " is " + selector_name(config.kind)
                                + " but must be prioritized where priorities fade");
}

void check_priority(double priority, const std::string& whose) {
  if (valid_priority(priority))
    return;
  std::ostringstream text;
  text << "the priority of " << whose << " is " << priority << " but must be 0 to " << kMaxPriority
       << (std::isnan(priority) ? "; look for a NaN in the loss it comes from"
                                : "; take the error's absolute value, and clip it");
  throw std::invalid_argument(text.str());
}

void check_counts(std::size_t keys, std::size_t priorities) {
  if (keys != priorities)
    throw std::invalid_argument(std::to_string(keys) + " keys and " + std::to_string(priorities)
                                + " priorities: there must be one for each key");
}

void Selector::update(std::span<const Place> places, std::span<const double> priorities) {
  for (std::size_t i = 0; i < places.size(); ++i)
    update(places[i], priorities[i]);
}

void Selector::select(Random& random, std::span<Selected> out) const {
  for (Selected& one : out)
    one = select(random);
}

std::unique_ptr<Selector> make_selector(const SelectorConfig& config) {
  check(config, "a selector");
  switch (config.kind) {
  case SelectorKind::uniform:
    return std::make_unique<Uniform>();
  case SelectorKind::prioritized:
    if (config.fade < 1)
      return std::make_unique<FadedSelector>(config);
    return std::make_unique<Prioritized>(config.exponent);
  case SelectorKind::fifo:
  case SelectorKind::lifo:
    return std::make_unique<Queue>(config.kind == SelectorKind::lifo);
  case SelectorKind::min_heap:
  case SelectorKind::max_heap:
    return std::make_unique<Heap>(config.kind == SelectorKind::min_heap ? 1.0 : -1.0);
  }
  throw std::logic_error("no such selector");
}

} // namespace troupe::replay
