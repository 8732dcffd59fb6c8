#include "experiments/dashboard/run_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "env/text/number_in.hpp"
#include "experiments/run_folder/metrics_file.hpp"

namespace troupe::experiments::dashboard {
namespace {

constexpr std::size_t kPart = 1 << 20; // bytes read at a time
constexpr std::size_t kMostRecord = kPart / 2;
constexpr std::size_t kMostColumns = 512;
constexpr std::size_t kMostEvaluations = 4096; // maximum number of buckets

} // namespace

RunMetrics::RunMetrics(std::filesystem::path file, std::uint64_t version)
    : file_(std::move(file)), version_(version) {}

void RunMetrics::reset() {
  at_ = 0;
  names_.clear();
  last_.clear();
  reports_.reset();
  evaluations_.reset();
  ++version_;
}

void RunMetrics::read(Deadline deadline) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);
  size_ = error ? 0 : size;
  if (size_ < at_) {
    reset();
  }
  complete_ = at_ >= size_;
  if (complete_) {
    return;
  }
  std::ifstream in(file_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at_));
  std::string part(kPart, '\0'), rest;
  const auto begin = at_;
  do {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    at_ += count;
    complete_ = count == 0 || at_ >= size_;
    rest.append(part, 0, count);
    rest.erase(0, scan_csv(rest, [this](const auto& fields) { take(fields); }));
    if (rest.size() > kMostRecord) { // not one of our records
      rest.clear();
    }
  } while (!complete_ && std::chrono::steady_clock::now() < deadline);
  at_ -= rest.size(); // the next head of the run may replace an incomplete record
  version_ += at_ == begin ? 0 : 1;
}

void RunMetrics::take(const std::vector<std::string_view>& fields) {
  if (names_.empty()) {
    names_.assign(fields.begin(),
                  fields.begin()
                      + static_cast<std::ptrdiff_t>(std::min(fields.size(), kMostColumns)));
    last_.assign(names_.size(), std::numeric_limits<double>::quiet_NaN());
    reports_.emplace(names_.size());
    evaluations_.emplace(names_.size(), kMostEvaluations);
    kind_ = index_of("kind").value_or(0);
    steps_ = index_of("environment_steps").value_or(0);
    updates_ = index_of("updates").value_or(0);
    return;
  }
  if (fields.size() < names_.size()) {
    return;
  }
  values_.resize(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    values_[i] =
        env::number_in<double>(fields[i]).value_or(std::numeric_limits<double>::quiet_NaN());
  }
  const bool report = fields[kind_] == "progress";
  if (!report) { // counters and rates that an evaluation lacks keep the last report's values
    for (std::size_t i = 0; i < names_.size(); ++i) {
      values_[i] =
          std::isnan(values_[i]) && !names_[i].starts_with("validation_") ? last_[i] : values_[i];
    }
  }
  const double steps = values_[steps_];
  const double position = steps > 0 ? steps : values_[updates_];
  (report ? *reports_ : *evaluations_).add(std::isnan(position) ? 0 : position, values_);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    last_[i] = std::isnan(values_[i]) ? last_[i] : values_[i];
  }
}

std::optional<std::size_t> RunMetrics::index_of(const std::string& column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  return found == names_.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - names_.begin()));
}

std::vector<SeriesPoint> RunMetrics::series(const std::string& x, const std::string& y,
                                            std::size_t most) const {
  const auto along = index_of(x), value = index_of(y);
  if (!along || !value) {
    return {};
  }
  const bool evaluated = y.starts_with("evaluation_") || y.starts_with("validation_");
  return (evaluated ? *evaluations_ : *reports_).series(*along, *value, most);
}

std::optional<double> RunMetrics::last(const std::string& column) const {
  const auto index = index_of(column);
  return index && !std::isnan(last_[*index]) ? std::optional(last_[*index]) : std::nullopt;
}

} // namespace troupe::experiments::dashboard
