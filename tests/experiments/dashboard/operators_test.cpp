#include "tests/doctest_torch.hpp"

#include <chrono>
#include <memory>

#include "experiments/dashboard/operators.hpp"

using namespace troupe::experiments::dashboard;

namespace {

/// Counts how many of these are open.
class CountedOperator : public RunOperator {
public:
  explicit CountedOperator(int& open) : open_(open) { ++open_; }
  ~CountedOperator() override { --open_; }
  std::vector<std::string> actions() const override { return {"stop"}; }
  std::string status() override { return "{}"; }
  std::string stop() override { return "stopped"; }
  std::string scale(const std::string&, int) override { return ""; }
  std::string restart(const std::string&, const std::string&) override { return ""; }
  std::string checkpoint() override { return ""; }
  std::string pause(bool) override { return ""; }
  std::string timeline(std::int64_t) override { return ""; }
  std::string limit(double, double) override { return ""; }
  Picture picture(int, int, bool) override { return {}; }

private:
  int& open_;
};

} // namespace

TEST_CASE("A connection to a run is closed when unused, also if only actions have used it") {
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  int open = 0;
  Operators operators(
      [&](const std::filesystem::path&) { return std::make_unique<CountedOperator>(open); },
      [&] { return now; });
  const WatchedRun one("one", "one"), other("other", "other");
  const auto stop = [](RunOperator& run) { return run.stop(); };
  CHECK(operators.act(one, stop) == "stopped");
  now += std::chrono::seconds(20);
  CHECK(operators.status(other).status == "{}");
  CHECK(open == 2);
  now += std::chrono::seconds(20);
  CHECK(operators.act(other, stop) == "stopped");
  CHECK(open == 1); // the first was unused for 40 seconds
}
