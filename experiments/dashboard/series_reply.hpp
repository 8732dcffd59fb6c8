#pragma once

#include <chrono>
#include <string>

#include "experiments/dashboard/run_catalogue.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// Answers POST /api/series: one column over another, for many runs.
///
/// The body is {"x": COLUMN, "y": COLUMN, "points": MOST, "runs": [{"id": ID, "version": N}]}, with
/// at most RunCatalogue::kMostLoaded runs.
/// `version` is the version that the client has, 0 for none. `y` may be "headline", which stands
/// for the main result of each run.
///
/// The answer is binary: the length of a JSON text in 4 bytes, the text, padded with spaces to a
/// multiple of 4, and numbers of 4 bytes; all are little-endian. The text is {"runs": [{"id",
/// "version", "read", "points", "offset"}], "columns": [NAME]}. The `points` values of x begin at
/// number `offset`, followed by as many values of mean, minimum and maximum. Runs of which the
/// client has the current version are omitted, together with the columns that only they have.
/// `read` is the fraction of the file that was read: reading stops at the deadline and continues
/// with the next request.
web::Response series_reply(const web::Request& request, RunCatalogue& catalogue,
                           std::chrono::milliseconds budget);

} // namespace troupe::experiments::dashboard
