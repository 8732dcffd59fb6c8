#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "experiments/dashboard/run_operator.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::dashboard {

struct DashboardOptions {
  std::filesystem::path runs = "runs"; // the folder that contains all runs
  web::HttpOptions http = {};
  std::string token; // see web/access.hpp
  Connect connect;
  std::filesystem::path selected = {}; // the run that the page shows first; empty: the newest
};

/// Serves the page and /metrics and answers the page's requests, on its own threads, until it is
/// destroyed.
class Dashboard {
public:
  /// Throws std::invalid_argument if the folder for runs does not exist, and the exceptions of
  /// HttpServer.
  explicit Dashboard(const DashboardOptions& options);
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  /// The address to open in a browser. It contains the token.
  std::string address() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::dashboard
