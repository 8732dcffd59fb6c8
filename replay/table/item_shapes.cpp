#include "replay/table/item_shapes.hpp"

#include <utility>

namespace troupe::replay {

namespace {

constexpr std::int64_t kEntryBytes = 160; // of a shape without its slices: nodes, pointers, counts

std::int64_t bytes_of(const ItemShape& shape) {
  std::int64_t bytes = kEntryBytes;
  for (const std::vector<Slice>& slices : shape.columns)
    bytes += static_cast<std::int64_t>(sizeof slices + slices.size() * sizeof(Slice));
  return bytes;
}

} // namespace

void ItemShapes::begin_insertion() {
  last_ = nullptr;
  if (!seen_.empty())
    seen_.clear();
}

std::uint32_t ItemShapes::use(const ShapePtr& shape) {
  if (!shape)
    return 0;
  if (shape.get() != last_) {
    std::uint32_t number = 0;
    if (const auto known = seen_.find(shape.get()); known != seen_.end())
      number = known->second;
    else if (const auto at = numbers_.find(shape.get()); at != numbers_.end())
      number = at->second;
    else
      number = add(shape);
    if (last_ != nullptr)
      seen_[last_] = last_number_;
    last_ = shape.get();
    last_number_ = number;
  }
  ++entries_[last_number_].uses;
  return last_number_;
}

void ItemShapes::release(std::uint32_t number) {
  if (number != 0 && --entries_[number].uses == 0)
    free(number);
}

std::uint32_t ItemShapes::add(const ShapePtr& shape) {
  auto number = static_cast<std::uint32_t>(entries_.size());
  if (free_.empty())
    entries_.emplace_back();
  else
    number = free_.extract(free_.begin()).value();
  entries_[number].shape = shape;
  numbers_.emplace(shape.get(), number);
  bytes_ += bytes_of(*shape);
  return number;
}

void ItemShapes::free(std::uint32_t number) {
  Entry& entry = entries_[number];
  bytes_ -= bytes_of(*entry.shape);
  numbers_.erase(entry.shape.get());
  entry.shape.reset();
  free_.insert(number);
  begin_insertion(); // the number may soon belong to another shape
}

std::vector<std::uint32_t> ItemShapes::restore(const std::vector<ShapePtr>& shapes) {
  entries_.resize(shapes.size());
  std::vector<std::uint32_t> numbers(shapes.size());
  for (std::uint32_t i = 1; i < shapes.size(); ++i) {
    if (!shapes[i] || numbers_.contains(shapes[i].get())) {
      numbers[i] = shapes[i] ? numbers_.at(shapes[i].get()) : 0;
      free_.insert(i);
      continue;
    }
    entries_[i].shape = shapes[i];
    numbers_.emplace(shapes[i].get(), i);
    bytes_ += bytes_of(*shapes[i]);
    numbers[i] = i;
  }
  return numbers;
}

void ItemShapes::free_unused() {
  for (std::uint32_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].shape && entries_[i].uses == 0)
      free(i);
}

} // namespace troupe::replay
