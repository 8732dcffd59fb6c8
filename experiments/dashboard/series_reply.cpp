#include "experiments/dashboard/series_reply.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace troupe::experiments::dashboard {
namespace {

static_assert(std::endian::native == std::endian::little, "the answer is copied from memory");
/// If a request needed more metrics than are kept, it would read all of them again each time.
constexpr std::size_t kMostSeries = RunCatalogue::kMostLoaded;
constexpr int kMostPoints = 4096;

void append(std::string& bytes, const std::vector<SeriesPoint>& points, float SeriesPoint::*part) {
  for (const SeriesPoint& point : points) {
    char number[sizeof(float)];
    std::memcpy(number, &(point.*part), sizeof number);
    bytes.append(number, sizeof number);
  }
}

std::string packed(const nlohmann::json& text, const std::string& numbers) {
  std::string head = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  head.resize((head.size() + 3) / 4 * 4, ' ');
  const auto length = static_cast<std::uint32_t>(head.size());
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + head + numbers;
}

} // namespace

web::Response series_reply(const web::Request& request, RunCatalogue& catalogue,
                           std::chrono::milliseconds budget) try {
  const auto deadline = std::chrono::steady_clock::now() + budget;
  const auto wanted = nlohmann::json::parse(request.body);
  const std::string x = wanted.at("x"), y = wanted.at("y");
  const int most = std::clamp(wanted.at("points").get<int>(), 2, kMostPoints);
  const auto& chosen = wanted.at("runs");
  if (chosen.size() > kMostSeries) {
    throw std::invalid_argument("runs: " + std::to_string(chosen.size())
                                + " were asked for; at most " + std::to_string(kMostSeries)
                                + " are drawn");
  }
  nlohmann::json runs = nlohmann::json::array();
  std::set<std::string> columns;
  std::string numbers;
  for (const auto& one : chosen) {
    const RunPtr run = catalogue.find(one.at("id"));
    catalogue.used(run);
    const std::string column = y == "headline" ? run->summary(deadline).headline : y;
    run->with_metrics(deadline, [&](const RunMetrics& metrics) {
      if (metrics.complete() && metrics.version() == one.at("version").get<std::uint64_t>()) {
        return;
      }
      const auto points = metrics.series(x, column, static_cast<std::size_t>(most));
      const double size = static_cast<double>(std::max<std::uint64_t>(1, metrics.bytes()));
      runs.push_back(
          {{"id", run->id()},
           {"version", metrics.version()},
           {"read", metrics.complete() ? 1.0 : static_cast<double>(metrics.bytes_read()) / size},
           {"points", points.size()},
           {"offset", numbers.size() / sizeof(float)}});
      columns.insert(metrics.columns().begin(), metrics.columns().end());
      append(numbers, points, &SeriesPoint::x);
      append(numbers, points, &SeriesPoint::mean);
      append(numbers, points, &SeriesPoint::minimum);
      append(numbers, points, &SeriesPoint::maximum);
    });
  }
  return {.type = "application/octet-stream",
          .body = packed({{"runs", runs}, {"columns", columns}}, numbers)};
} catch (const nlohmann::json::exception& error) {
  throw std::invalid_argument(std::string("the body is not a request for series: ") + error.what());
}

} // namespace troupe::experiments::dashboard
