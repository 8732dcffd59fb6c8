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
  std::string endpoint; // tcp://<host>:<port> or ipc://<path>; * finds a port
  std::optional<env::wire::ServerKeys> keys = {}; // needed on other interfaces than loopback
  std::size_t body_bytes = 16 << 20;
  std::size_t waiting = 65'536; // requests without an answer; 503 beyond
};

/// Takes the same requests as an HTTP server, as messages of ZeroMQ. A client is a dealer; each
/// message has two parts:
///
///   {"path": "/v1/act", "method": "POST", "authorization": "Bearer TOKEN", "type": …, "id": …}
///   the body, JSON or bytes
///
/// All keys but "path" and "authorization" may be left out; the method is POST if there is a body.
/// The answer has two parts as well, {"status": 200, "type": …, "id": …} with the request's id, and
/// its body. Answers come in the order in which they are ready.
class MessageDoor {
public:
  /// Listens. Throws std::invalid_argument naming the endpoint, std::runtime_error if it is taken.
  MessageDoor(env::wire::Context& context, MessageDoorOptions options,
              web::HttpServer::DeferringHandler handler);
  ~MessageDoor(); // later answers are dropped
  MessageDoor(const MessageDoor&) = delete;
  MessageDoor& operator=(const MessageDoor&) = delete;

  const std::string& endpoint() const { return endpoint_; } // with its port

private:
  struct Answers;
  class Clerk;
  std::shared_ptr<Answers> answers_;
  std::string endpoint_;
  std::jthread thread_;
};

} // namespace troupe::experiments::serving
