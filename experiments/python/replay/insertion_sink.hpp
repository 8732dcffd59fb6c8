#pragma once

#include <memory>
#include <string>

#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"

namespace troupe::python {

/// Where a writer's insertions go: a table of this process or a client of a served one.
class InsertionSink {
public:
  virtual ~InsertionSink() = default;

  virtual const std::shared_ptr<const replay::Signature>& signature() const = 0;

  /// With the interpreter's lock, which is released while it waits. `table` "": the sink's own.
  /// False: not accepted before the deadline, in seconds from now, and not kept.
  virtual bool insert(const replay::InsertionPtr& insertion, const std::string& table,
                      double deadline) = 0;
};

} // namespace troupe::python
