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

/// Publishes one flat vector of floats (parameters) with a version; subscribers get the latest.
/// One thread.
class Publisher {
public:
  /// Throws as Socket::bind() does.
  Publisher(Context& context, const std::string& endpoint, std::optional<ServerKeys> keys = {});

  const std::string& endpoint() const { return endpoint_; } // with the port

  /// Copies the values once, whatever the number of subscribers; never waits.
  void publish(std::uint64_t version, std::span<const float> values);

  /// Repeats the last publication for late subscribers and slow connections (others drop it by its
  /// version): call it periodically. No effect before the first publish().
  void repeat();

private:
  Socket socket_;
  std::string endpoint_;
  std::shared_ptr<const std::vector<std::byte>> last_;
};

/// A received publication: the version and its values, which live in the received frame.
struct Received {
  std::uint64_t version = 0;
  std::span<const float> values;
  Frame frame;
};

/// Receives the latest publication. May be created before its publisher. One thread.
class Subscriber {
public:
  /// `max_floats`: a publication of more is refused before it is allocated.
  Subscriber(Context& context, const std::string& endpoint, std::size_t max_floats,
             std::optional<ClientKeys> keys = {});

  /// The latest publication, if its version differs from the last one returned; never waits.
  std::optional<Received> poll();
  /// The same, waiting for one until the deadline.
  std::optional<Received> wait(Deadline deadline);

  std::int64_t garbage() const { return garbage_; } // messages dropped: not of this format

private:
  Socket socket_;
  std::optional<std::uint64_t> last_version_;
  std::int64_t garbage_ = 0;
};

} // namespace troupe::env::wire
