#pragma once

#include <memory>
#include <string>

#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"

namespace troupe::python {

/// The destination of a writer's insertions: a table of this process, or a client of a served one.
class InsertionSink {
public:
  virtual ~InsertionSink() = default;

  virtual const std::shared_ptr<const replay::Signature>& signature() const = 0;

  /// Throws std::invalid_argument if the sink has no table of this name.
  virtual void check_table(const std::string& table) = 0;

  /// Call it with the interpreter's lock, which is released during waits. An empty `table` means
  /// the sink's own. `deadline` is in seconds from now. Returns false if the insertion was not
  /// accepted before the deadline; the sink then keeps nothing of it. Throws std::invalid_argument
  /// if it can never be accepted.
  virtual bool insert(const replay::InsertionPtr& insertion, const std::string& table,
                      double deadline) = 0;
};

} // namespace troupe::python
