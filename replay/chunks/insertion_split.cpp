#include "replay/chunks/insertion_split.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe::replay {

std::vector<InsertionPtr> split(const Insertion& insertion,
                                std::span<const std::size_t> part_of_item, std::size_t parts) {
  if (part_of_item.size() != insertion.items.size()
      || std::any_of(part_of_item.begin(), part_of_item.end(),
                     [&](std::size_t part) { return part >= parts; }))
    throw std::invalid_argument("an insertion of " + std::to_string(insertion.items.size())
                                + " items needs one part for each, all below "
                                + std::to_string(parts) + ", got "
                                + std::to_string(part_of_item.size()));
  std::vector<std::shared_ptr<Insertion>> made(parts);
  for (std::size_t i = 0; i < part_of_item.size(); ++i) {
    std::shared_ptr<Insertion>& part = made[part_of_item[i]];
    if (!part) {
      part = std::make_shared<Insertion>();
      part->writer_id = insertion.writer_id;
      part->sequence = insertion.sequence;
      part->closed = insertion.closed;
    }
    part->items.push_back(insertion.items[i]);
  }
  const auto first =
      std::find_if(made.begin(), made.end(), [](const auto& part) { return part != nullptr; });
  if (first != made.end())
    (*first)->rows = insertion.rows;
  return {made.begin(), made.end()};
}

} // namespace troupe::replay
