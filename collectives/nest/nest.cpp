#include "collectives/nest/nest.hpp"

#include <functional>
#include <stdexcept>

#define XXH_INLINE_ALL // users of the installed library need not link xxhash
#include <xxhash.h>

#include "collectives/mesh/fingerprint.hpp"

namespace troupe::collectives {
namespace {

[[noreturn]] void refuse(const Nest& nest, const std::string& wanted) {
  throw std::invalid_argument("nest: " + nest.describe() + " is not " + wanted);
}

} // namespace

const at::Tensor& Nest::tensor() const {
  if (const auto* tensor = std::get_if<at::Tensor>(&value_))
    return *tensor;
  refuse(*this, "a tensor");
}

const Nest::List& Nest::list() const {
  if (const auto* list = std::get_if<List>(&value_))
    return *list;
  refuse(*this, "a list");
}

const Nest::Map& Nest::map() const {
  if (const auto* map = std::get_if<Map>(&value_))
    return *map;
  refuse(*this, "a map");
}

const Nest& Nest::at(const std::string& name) const {
  const auto& all = map();
  if (const auto found = all.find(name); found != all.end())
    return found->second;
  refuse(*this, "a map with \"" + name + '"');
}

const Nest& Nest::at(std::size_t i) const {
  const auto& all = list();
  if (i >= all.size())
    refuse(*this, "a list with an entry " + std::to_string(i));
  return all[i];
}

std::vector<at::Tensor> Nest::flatten() const {
  std::vector<at::Tensor> tensors;
  const std::function<void(const Nest&)> visit = [&](const Nest& nest) {
    if (const auto* tensor = std::get_if<at::Tensor>(&nest.value_))
      tensors.push_back(*tensor);
    else if (const auto* list = std::get_if<List>(&nest.value_))
      for (const auto& child : *list)
        visit(child);
    else
      for (const auto& [name, child] : std::get<Map>(nest.value_))
        visit(child);
  };
  visit(*this);
  return tensors;
}

Nest Nest::pack(const std::vector<at::Tensor>& tensors, std::size_t& next) const {
  if (is_tensor()) {
    if (next >= tensors.size())
      throw std::invalid_argument("nest: " + std::to_string(tensors.size())
                                  + " tensors are too few for " + describe());
    return tensors[next++];
  }
  if (const auto* list = std::get_if<List>(&value_)) {
    List packed;
    for (const auto& child : *list)
      packed.push_back(child.pack(tensors, next));
    return packed;
  }
  Map packed;
  for (const auto& [name, child] : std::get<Map>(value_))
    packed.emplace(name, child.pack(tensors, next));
  return packed;
}

Nest Nest::pack(const std::vector<at::Tensor>& tensors) const {
  std::size_t next = 0;
  auto packed = pack(tensors, next);
  if (next != tensors.size())
    throw std::invalid_argument("nest: " + std::to_string(tensors.size())
                                + " tensors are too many for " + describe());
  return packed;
}

std::string Nest::describe() const {
  if (const auto* tensor = std::get_if<at::Tensor>(&value_)) {
    if (!tensor->defined())
      return "undefined";
    std::string text = type_name(tensor->scalar_type()) + " [";
    for (std::int64_t i = 0; i < tensor->dim(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(tensor->size(i));
    return text + ']';
  }
  std::string text;
  if (const auto* list = std::get_if<List>(&value_)) {
    for (const auto& child : *list)
      text += (text.empty() ? "" : ", ") + child.describe();
    return '[' + text + ']';
  }
  for (const auto& [name, child] : std::get<Map>(value_))
    text += (text.empty() ? "" : ", ") + name + ": " + child.describe();
  return '{' + text + '}';
}

std::uint64_t Nest::fingerprint() const {
  const std::string text = describe();
  return XXH3_64bits(text.data(), text.size());
}

} // namespace troupe::collectives
