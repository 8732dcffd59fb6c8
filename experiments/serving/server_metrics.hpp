#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::experiments::serving {

/// Metrics of a policy server for Prometheus. May be used from any thread.
class ServerMetrics {
public:
  ServerMetrics();
  ~ServerMetrics();

  void answered(const std::string& version, int status, double seconds);
  void computed(std::size_t batch);
  void reloaded(bool succeeded);
  void loaded(const std::string& version, double updates, double share);

  std::string text(std::size_t queued, std::size_t sessions);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace troupe::experiments::serving
