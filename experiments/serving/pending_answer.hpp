#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/serving/sessions.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::serving {

/// A request for actions that is being answered; its last job sends the answer.
struct PendingAnswer {
  web::HttpServer::Reply reply;
  std::string version;
  std::int64_t updates = 0;
  std::string session_name;
  Session session;                     // as before the request, until there is an action
  bool begins = false;                 // the request begins the session
  bool ends = false;                   // the session ends with the answer
  std::vector<std::byte> history = {}; // becomes the session's history once there is an action
  bool many = false;
  bool as_bytes = false;
  std::vector<std::vector<float>> actions = {};
  std::size_t left = 0; // number of unfinished jobs
  std::string error;
  std::chrono::steady_clock::time_point since;

  web::Response response() const; // of its actions
};

} // namespace troupe::experiments::serving
