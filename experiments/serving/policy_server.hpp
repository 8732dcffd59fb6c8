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

/// A policy under a name, which may be replaced by newer parameters while it is served.
struct VersionOptions {
  std::string name = "main"; // letters, digits, - and _
  double share = 1;          // of the requests that name no version, relative to the others'
  /// The policy if it has other parameters than `updates`, else null. -1: none is loaded yet. What
  /// it throws is logged, and the old policy stays.
  std::function<std::unique_ptr<ServedPolicy>(std::int64_t updates)> newer;
};

struct PolicyServerOptions {
  web::HttpOptions http = {};
  std::string token = {}; // of the header "Authorization: Bearer TOKEN"
  std::vector<VersionOptions> versions = {};
  Batcher::Limits batches = {};
  Sessions::Limits sessions = {};
  std::function<void(const std::string&)> log = {};
};

/// Actions of trained policies over HTTP.
///
///   POST /v1/act       an observation, or many, to actions (act_request.hpp)
///   GET  /v1/contract  what the policy observes and does (contract.json of `troupe export`)
///   GET  /v1/versions  names, updates and shares
///   POST /v1/shares    {"main": 0.9, "candidate": 0.1}: how requests are divided from now on
///   GET  /metrics      for Prometheus
///   GET  /healthz, /readyz  for probes; they alone need no token
class PolicyServer {
public:
  /// Loads the policies and listens. Throws what their functions throw, std::invalid_argument if
  /// two policies have different contracts, and as HttpServer does.
  explicit PolicyServer(PolicyServerOptions options);
  ~PolicyServer();
  PolicyServer(const PolicyServer&) = delete;
  PolicyServer& operator=(const PolicyServer&) = delete;

  std::string address() const;

  /// Asks every version for newer parameters. One thread.
  void reload();

  /// As POST /v1/act answers: at once or later, on any thread.
  void act(const web::Request& request, const web::HttpServer::Reply& reply);
  /// As any request over HTTP is answered, the token included.
  void serve(const web::Request& request, const web::HttpServer::Reply& reply);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::serving
