#pragma once

#include <chrono>
#include <string>

#include "experiments/dashboard/run_catalogue.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// Answers POST /api/series: one column of many runs along another.
///
/// The body is {"x": COLUMN, "y": COLUMN, "points": MOST, "runs": [{"id": ID, "version": N}]}.
/// `version` is what the client has, 0 for nothing; `y` may be "headline", each run's own result.
/// The answer is binary: the length of a JSON text in 4 bytes, the text, padded with spaces to a
/// multiple of 4, and numbers of 4 bytes; all little-endian. The text is {"runs": [{"id",
/// "version", "read", "points", "offset"}], "columns": [NAME]}; from number `offset` follow
/// `points` each of x, mean, minimum and maximum. Runs that are as the client has them are left
/// out, with the columns that only they have. `read` is the part of the file that was read: reading
/// stops at the deadline and continues with the next request.
web::Response series_reply(const web::Request& request, RunCatalogue& catalogue,
                           std::chrono::milliseconds budget);

} // namespace troupe::experiments::dashboard
