#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/serving/batcher.hpp"
#include "experiments/serving/sessions.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::serving {

/// A policy with a name. It may be replaced by newer parameters while it is served.
struct VersionOptions {
  std::string name = "main"; // letters, digits, - and _
  double share = 1;          // share of the requests that name no version, relative to other shares
  /// Returns the policy if its parameters are not those of update `updates`, otherwise null; -1
  /// means that none is loaded yet. An exception is logged, and the old policy stays.
  std::function<std::unique_ptr<ServedPolicy>(std::int64_t updates)> newer;
};

struct PolicyServerOptions {
  web::HttpOptions http = {};
  std::string token = {}; // token in the header "Authorization: Bearer TOKEN"
  std::vector<VersionOptions> versions = {};
  Batcher::Limits batches = {};
  Sessions::Limits sessions = {};
  std::function<void(const std::string&)> log = {};
};

/// Serves the actions of trained policies over HTTP.
///
///   POST /v1/act       actions for one or more observations (act_request.hpp)
///   GET  /v1/contract  what the policy observes and does (contract.json of `troupe export`)
///   GET  /v1/versions  names, updates and shares
///   POST /v1/shares    {"main": 0.9, "candidate": 0.1}: changes how requests are divided
///   GET  /metrics      metrics for Prometheus
///   GET  /healthz, /readyz  for probes; only these two need no token
class PolicyServer {
public:
  /// Loads the policies and listens. Throws the exceptions of `newer` and of HttpServer, and
  /// std::invalid_argument if two policies have different contracts.
  explicit PolicyServer(PolicyServerOptions options);
  ~PolicyServer();
  PolicyServer(const PolicyServer&) = delete;
  PolicyServer& operator=(const PolicyServer&) = delete;

  std::string address() const;

  /// Asks every version for newer parameters. Call it from one thread only.
  void reload();

  /// Answers POST /v1/act, immediately or later, on any thread.
  void act(const web::Request& request, const web::HttpServer::Reply& reply);
  /// Answers any request, and checks its token, as the HTTP server does.
  void serve(const web::Request& request, const web::HttpServer::Reply& reply);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::serving
