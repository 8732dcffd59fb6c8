#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::serving {

struct MessageDoorOptions {
  std::string endpoint; // tcp://<host>:<port> or ipc://<path>; * selects a free port
  std::optional<env::wire::ServerKeys> keys = {}; // required on interfaces other than loopback
  std::size_t body_bytes = 16 << 20;
  std::size_t waiting = 65'536; // maximum number of unanswered requests; beyond: 503
};

/// Accepts the same requests as an HTTP server, as ZeroMQ messages. A client is a dealer. Each
/// message has two parts:
///
///   {"path": "/v1/act", "method": "POST", "authorization": "Bearer TOKEN", "type": …, "id": …}
///   the body, JSON or bytes
///
/// All keys except "path" and "authorization" may be omitted; the method is POST if there is a
/// body. An answer also has two parts: {"status": 200, "type": …, "id": …} with the request's id,
/// and its body. Answers are sent in the order in which they become ready. A message with more
/// parts or with a head above 16 KiB gets the status 413, without an id. A body above `body_bytes`
/// gets it, too, or ends the connection (SocketOptions::max_frame_bytes).
class MessageDoor {
public:
  /// Starts to listen. Throws std::invalid_argument that names a bad endpoint, and
  /// std::runtime_error if the endpoint is in use.
  MessageDoor(env::wire::Context& context, MessageDoorOptions options,
              web::HttpServer::DeferringHandler handler);
  ~MessageDoor(); // drops answers that come later
  MessageDoor(const MessageDoor&) = delete;
  MessageDoor& operator=(const MessageDoor&) = delete;

  const std::string& endpoint() const { return endpoint_; } // includes the actual port

private:
  struct Answers;
  class Clerk;
  std::shared_ptr<Answers> answers_;
  std::string endpoint_;
  std::jthread thread_;
};

} // namespace troupe::experiments::serving
