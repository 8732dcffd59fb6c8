#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "env/wire/frame.hpp"
#include "env/wire/socket.hpp"

namespace troupe::env::wire {

/// Publishes one flat vector of floats (parameters) with a version. Subscribers get the latest one.
/// Used by one thread.
class Publisher {
public:
  /// Throws the exceptions of Socket::bind().
  Publisher(Context& context, const std::string& endpoint, std::optional<ServerKeys> keys = {});

  const std::string& endpoint() const { return endpoint_; } // with the port

  /// Copies the values once, however many subscribers there are. Never waits.
  void publish(std::uint64_t version, std::span<const float> values);

  /// Repeats the last publication for late subscribers and slow connections; other subscribers
  /// recognise its version and drop it. Call it periodically. Has no effect before the first
  /// publish().
  void repeat();

private:
  Socket socket_;
  std::string endpoint_;
  std::shared_ptr<const std::vector<std::byte>> last_;
};

/// A received publication: its version and its values, which are stored in `frame`.
struct Received {
  std::uint64_t version = 0;
  std::span<const float> values;
  Frame frame;
};

/// Receives the latest publication. May be created before its publisher. Used by one thread.
class Subscriber {
public:
  /// A publication of more than `max_floats` values is refused before memory is allocated for it.
  Subscriber(Context& context, const std::string& endpoint, std::size_t max_floats,
             std::optional<ClientKeys> keys = {});

  /// Returns the latest publication if its version differs from the last one returned. Never waits.
  std::optional<Received> poll();
  /// As poll(), but waits for a publication until the deadline.
  std::optional<Received> wait(Deadline deadline);

  std::int64_t garbage() const { return garbage_; } // dropped messages that are not publications

private:
  Socket socket_;
  std::optional<std::uint64_t> last_version_;
  std::int64_t garbage_ = 0;
};

} // namespace troupe::env::wire
