#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "experiments/dashboard/run_operator.hpp"
#include "experiments/web/http_server.hpp"

namespace troupe::experiments::dashboard {

struct DashboardOptions {
  std::filesystem::path runs = "runs"; // the folder of all runs
  web::HttpOptions http = {};
  std::string token; // web/access.hpp
  Connect connect;
  std::filesystem::path selected = {}; // the run that the page shows first; empty: the newest
};

/// Serves the page, what it asks for and /metrics on threads of its own while it exists.
class Dashboard {
public:
  /// Throws std::invalid_argument if there is no folder for runs, what HttpServer throws
  /// otherwise.
  explicit Dashboard(const DashboardOptions& options);
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  /// To open in a browser; it contains the token.
  std::string address() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::dashboard
