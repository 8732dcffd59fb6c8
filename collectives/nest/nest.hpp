#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::collectives {

/// A nested structure of tensors: a tensor, a list of nests, or a map of named nests. Collectives
/// on several tensors take it as their argument: `{{"loss", loss}, {"parts", std::vector<Nest>{a,
/// b}}}`.
class Nest {
public:
  using List = std::vector<Nest>;
  using Map = std::map<std::string, Nest>;

  Nest() : value_(List{}) {}
  Nest(at::Tensor tensor) : value_(std::move(tensor)) {}
  Nest(List list) : value_(std::move(list)) {}
  Nest(Map map) : value_(std::move(map)) {}
  Nest(const std::vector<at::Tensor>& tensors) : value_(List(tensors.begin(), tensors.end())) {}
  Nest(const std::map<std::string, at::Tensor>& tensors)
      : value_(Map(tensors.begin(), tensors.end())) {}

  bool is_tensor() const { return std::holds_alternative<at::Tensor>(value_); }
  /// Each accessor throws std::invalid_argument if this nest is of another kind; the message says
  /// which.
  const at::Tensor& tensor() const;
  const List& list() const;
  const Map& map() const;
  const Nest& at(const std::string& name) const; // of a map; an error lists the names
  const Nest& at(std::size_t i) const;           // of a list

  /// Returns all tensors, depth first, with maps in the order of their names.
  std::vector<at::Tensor> flatten() const;
  /// Returns the same structure with other tensors, in the order of flatten(). Throws
  /// std::invalid_argument if their number differs.
  Nest pack(const std::vector<at::Tensor>& tensors) const;

  /// Returns e.g. "{a: float32 [2], b: [int64 [], int64 []]}".
  std::string describe() const;
  /// Returns a hash of describe(). Nests with equal structures, types and shapes have equal hashes
  /// in every process.
  std::uint64_t fingerprint() const;

private:
  Nest pack(const std::vector<at::Tensor>& tensors, std::size_t& next) const;
  std::variant<at::Tensor, List, Map> value_;
};

} // namespace troupe::collectives
