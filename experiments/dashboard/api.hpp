#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "experiments/dashboard/operators.hpp"
#include "experiments/dashboard/run_catalogue.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// The requests of the page. Answers are JSON unless another type is named. May be used from any
/// thread.
///
/// - GET /api/runs: the list of runs, with state and result
/// - GET /api/run?id=: one run: live.json, status of its head, videos, checkpoints
/// - GET /api/config?id=&other=: the configuration, and how it differs from another run's
/// - GET /api/logs?id=&who=&contains=&problems=1: lines of the logs
/// - GET /api/file?id=&path=: a video, picture or timeline (run_file.hpp)
/// - GET /api/picture?id=&actor=&environment=&observed=1: a live picture as JPEG; the header
///   X-Troupe-Picture contains the other members of RunOperator::Picture as JSON
/// - GET /metrics: metrics for Prometheus (prometheus_reply.hpp, text)
/// - POST /api/series: curves (series_reply.hpp, binary)
/// - POST /api/compare {"runs": [ID]}: the keys in which runs differ, with their results
/// - POST /api/stop {"id"}, /api/checkpoint {"id"}, /api/pause {"id", "paused"},
///   /api/scale {"id", "role", "count"}, /api/restart {"id", "role", "node"},
///   /api/timeline {"id", "updates"}, /api/limit {"id", "samples_per_insert", "error_buffer"}
///
/// Throws std::invalid_argument for a request that names no run, and for an action that is refused.
class Api {
public:
  /// A request reads files for about `budget` at most and answers with what it has read by then.
  Api(const std::filesystem::path& runs, Connect connect, std::string selected,
      std::chrono::milliseconds budget = std::chrono::milliseconds(60));

  static bool serves(const std::string& path);
  web::Response answer(const web::Request& request);

private:
  RunMetrics::Deadline budget_end() const;
  web::Response list();
  web::Response one(const web::Request& request);
  web::Response config(const web::Request& request);
  web::Response compare(const web::Request& request);
  web::Response logs(const web::Request& request);
  web::Response picture(const web::Request& request);
  web::Response act(const web::Request& request);

  RunCatalogue catalogue_;
  Operators operators_;
  std::string selected_;
  std::chrono::milliseconds budget_;
};

} // namespace troupe::experiments::dashboard
