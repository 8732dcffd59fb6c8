#include "tests/doctest_torch.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include "env/random.hpp"
#include "experiments/dashboard/metrics_rows.hpp"
#include "experiments/dashboard/run_metrics.hpp"
#include "experiments/dashboard/watched_run.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "tests/experiments/dashboard/dashboard_fixture.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::dashboard;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const RunMetrics::Deadline kNoDeadline = RunMetrics::Deadline::max();

const std::string kHeader =
    "kind,environment_steps,updates,frames,training_seconds,episode_return,evaluation_return\r\n";

std::string row(int i) {
  return "progress," + std::to_string(10 * i) + "," + std::to_string(i) + ","
         + std::to_string(40 * i) + "," + std::to_string(0.5 * i) + "," + std::to_string(i % 7)
         + ",\r\n";
}

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

} // namespace

TEST_CASE("The number of buckets is bounded, and buckets preserve extremes, means and counts") {
  env::Random random(3);
  for (const int count : {1, 2, 15, 16, 17, 1000, 12345}) {
    MetricsRows rows(2, 16);
    double least = 1e9, most = -1e9, sum = 0;
    for (int i = 0; i < count; ++i) {
      const double value = random.uniform(-5, 5);
      least = std::min(least, value);
      most = std::max(most, value);
      sum += value;
      rows.add(i, {static_cast<double>(i), value});
    }
    CAPTURE(count);
    CHECK(rows.buckets() <= 16);
    CHECK(rows.buckets() >= std::min<std::size_t>(8, static_cast<std::size_t>(count)));
    const auto points = rows.series(0, 1, 16);
    float low = 1e9F, high = -1e9F;
    for (const auto& point : points) {
      low = std::min(low, point.minimum);
      high = std::max(high, point.maximum);
    }
    CHECK(low == static_cast<float>(least));
    CHECK(high == static_cast<float>(most));
    CHECK(std::is_sorted(points.begin(), points.end(),
                         [](const auto& a, const auto& b) { return a.x < b.x; }));
    const auto whole = rows.series(0, 1, 1);
    REQUIRE(whole.size() == 1);
    CHECK(whole[0].mean == doctest::Approx(sum / count).epsilon(1e-5));
    CHECK(whole[0].x == doctest::Approx((count - 1) / 2.0));
  }
}

TEST_CASE("Missing values are ignored, and a column without values has no points") {
  MetricsRows rows(3);
  rows.add(0, {0, 1, kNan});
  rows.add(1, {1, kNan, kNan});
  rows.add(2, {2, 3, kNan});
  CHECK(rows.series(0, 1, 10).size() == 2);
  CHECK(rows.series(0, 2, 10).empty());
  CHECK(rows.series(0, 1, 1)[0].mean == 2);
}

TEST_CASE("The rows of a resumed run replace the rows after its checkpoint") {
  MetricsRows rows(2);
  for (int i = 0; i < 10; ++i) {
    rows.add(i, {static_cast<double>(i), 1});
  }
  rows.add(4.5, {4.5, 2});
  const auto points = rows.series(0, 1, 100);
  REQUIRE(points.size() == 6);
  CHECK(points[4].x == 4);
  CHECK(points[5].mean == 2);
}

TEST_CASE("A file is read as it grows, and a partial row is read only once it is complete") {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.csv";
  RunMetrics metrics(file);
  metrics.read(kNoDeadline);
  CHECK(metrics.complete());
  CHECK(metrics.series("updates", "episode_return", 100).empty());
  append(file, kHeader + row(1) + row(2) + row(3).substr(0, 9));
  metrics.read(kNoDeadline);
  CHECK(metrics.complete());
  CHECK(metrics.series("updates", "episode_return", 100).size() == 2);
  CHECK(metrics.last("updates") == 2);
  const auto version = metrics.version();
  metrics.read(kNoDeadline);
  CHECK(metrics.version() == version); // nothing to send again
  append(file, row(3).substr(9));
  metrics.read(kNoDeadline);
  CHECK(metrics.version() != version);
  const auto points = metrics.series("training_seconds", "episode_return", 100);
  REQUIRE(points.size() == 3);
  CHECK(points[2].x == 1.5F);
  CHECK(points[2].mean == 3);
  CHECK(metrics.series("updates", "no such column", 100).empty());
}

TEST_CASE("The next head replaces the partial last row of a head that died") {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.csv";
  const std::string whole = kHeader + row(1);
  append(file, whole + row(2).substr(0, 9));
  RunMetrics metrics(file);
  metrics.read(kNoDeadline);
  CHECK(metrics.complete());
  CHECK(metrics.last("updates") == 1);
  std::filesystem::resize_file(file, whole.size());
  append(file, row(7));
  metrics.read(kNoDeadline);
  CHECK(metrics.last("updates") == 7);
  CHECK(metrics.series("updates", "episode_return", 100).size() == 2);
}

TEST_CASE("Evaluations have their own points, along any counter of the preceding reports") {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.csv";
  append(file, kHeader + row(1) + row(2) + "evaluation,20,2,,1.1,,500\r\n" + row(3)
                   + "final,30,3,,1.5,,700\r\n");
  RunMetrics metrics(file);
  metrics.read(kNoDeadline);
  const auto points = metrics.series("frames", "evaluation_return", 100);
  REQUIRE(points.size() == 2);
  CHECK(points[0].x == 80);
  CHECK(points[1].mean == 700);
  CHECK(metrics.series("updates", "episode_return", 100).size() == 3);
}

TEST_CASE("Reading a long file stops at the deadline and continues with the next call") {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.csv";
  std::string text = kHeader;
  for (int i = 1; i <= 60'000; ++i) {
    text += row(i);
  }
  append(file, text);
  REQUIRE(text.size() > (2U << 20));
  RunMetrics metrics(file);
  int calls = 0;
  for (; !metrics.complete(); ++calls) {
    metrics.read(RunMetrics::Deadline::min()); // one part of the file each
    CHECK(metrics.bytes_read() <= metrics.bytes());
  }
  CHECK(calls == static_cast<int>((text.size() + (1 << 20) - 1) >> 20));
  CHECK(metrics.last("updates") == 60'000);
  const auto points = metrics.series("updates", "episode_return", 300);
  CHECK(points.size() <= 300);
  CHECK(points.size() > 100);
  std::ofstream(file, std::ios::trunc | std::ios::binary) << kHeader << row(5); // a new run there
  metrics.read(kNoDeadline);
  CHECK(metrics.last("updates") == 5);
}

TEST_CASE("Metrics that are read again after they were forgotten are new to all") {
  const TemporaryFolder folder;
  write_run(folder.path(), 1, 20);
  WatchedRun run("run", folder.path());
  const auto version = [&] {
    return run.with_metrics(RunMetrics::Deadline::max(),
                            [](const RunMetrics& metrics) { return metrics.version(); });
  };
  const std::uint64_t before = version();
  CHECK(version() == before);
  run.forget_metrics();
  CHECK(version() > before);
}

TEST_CASE("The result of a run is found however long ago its last evaluation was") {
  const TemporaryFolder folder;
  std::string rows; // of a run that was resumed
  while (rows.size() < (5U << 19)) {
    rows += "progress,300,30,1200,15,3,\r\n";
  }
  write_run(folder.path(), 4, 20, rows);
  WatchedRun run("long", folder.path());
  const auto result = [&] { return run.summary(RunMetrics::Deadline::max()).result; };
  CHECK(result() == 400);
  std::ofstream metrics(folder / "metrics.csv", std::ios::binary | std::ios::app);
  metrics << "evaluation,310,31,,16,,500\r\n" << rows << std::flush;
  CHECK(result() == 500);
  metrics << rows << "evaluation,320,32,,17,,600\r\n" << std::flush;
  CHECK(result() == 600);
  metrics << rows << std::flush;
  CHECK(result() == 600);
  CHECK(run.summary(RunMetrics::Deadline::max()).environment_steps == 300);
}

TEST_CASE("The CSV scanner and reader agree, also on quoted fields and truncated text") {
  const std::vector<std::vector<std::string>> records = {
      {"a", "b"}, {"", "x,y"}, {"\"q\"", "line\r\nend"}, {"1", ""}};
  std::string text;
  for (const auto& record : records) {
    text += csv_record(record);
  }
  CHECK(read_csv(text) == records);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::vector<std::vector<std::string>> found;
    const auto take = [&](const std::vector<std::string_view>& fields) {
      found.emplace_back(fields.begin(), fields.end());
    };
    const std::size_t used = scan_csv(text.substr(0, cut), take);
    REQUIRE(used <= cut);
    scan_csv(text.substr(used), take); // continues where it stopped
    CHECK(found == records);
  }
}
