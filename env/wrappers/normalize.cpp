#include "env/wrappers/normalize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/state_bytes.hpp"
#include "env/wrappers/narrow.hpp"

namespace troupe::env {

namespace {

void check_fits(const EnvironmentSpec& spec, const ObservationStatistics& own,
                const ObservationStatistics& given) {
  std::string problem;
  if (own.arrays.size() != given.arrays.size())
    problem = std::to_string(given.arrays.size()) + " arrays where it has "
              + std::to_string(own.arrays.size());
  for (std::size_t i = 0; problem.empty() && i < own.arrays.size(); ++i)
    if (own.arrays[i].name != given.arrays[i].name
        || own.arrays[i].mean.size() != given.arrays[i].mean.size())
      problem = "'" + given.arrays[i].name + "' of " + std::to_string(given.arrays[i].mean.size())
                + " numbers where it has '" + own.arrays[i].name + "' of "
                + std::to_string(own.arrays[i].mean.size());
  if (!problem.empty())
    throw std::invalid_argument("normalization: the statistics do not fit environment " + spec.name
                                + ": they have " + problem
                                + "; use those of the same task and observations");
}

} // namespace

Normalize::Normalize(std::unique_ptr<Environment> wrapped, NormalizeOptions options)
    : Wrapper(std::move(wrapped)),
      clip_(options.clip),
      update_(options.update),
      statistics_(empty_statistics(spec_)) {
  spec_.goal = {};
  if (!(clip_ > 0))
    throw std::invalid_argument("normalization.clip: " + std::to_string(clip_)
                                + " is out of range; it must be above 0");
  for (std::size_t i = 0; i < spec_.observations.size(); ++i)
    if (is_floating(spec_.observations[i].type))
      arrays_.push_back(i);
  if (arrays_.empty())
    throw std::invalid_argument("normalization: environment " + spec_.name
                                + " has no floating-point observations; normalise states, "
                                  "not pixels");
  if (options.statistics) {
    check_fits(spec_, statistics_, *options.statistics);
    statistics_ = *std::move(options.statistics);
  }
}

template <typename T>
void Normalize::normalize(std::size_t array, std::byte* numbers) {
  auto& known = statistics_.arrays[array];
  for (std::size_t i = 0; i < known.mean.size(); ++i) {
    T number = 0;
    std::memcpy(&number, numbers + i * sizeof(T), sizeof number);
    const auto value = static_cast<double>(number);
    if (!std::isfinite(value)) // checked before it enters the statistics
      throw std::runtime_error("environment " + spec_.name + ": observation '" + known.name + "'["
                               + std::to_string(i) + "] is " + std::to_string(value)
                               + "; it cannot be normalised");
    if (update_) {
      const double distance = value - known.mean[i];
      known.mean[i] += distance / static_cast<double>(statistics_.count);
      known.squares[i] += distance * (value - known.mean[i]);
    }
    const double scaled = (value - known.mean[i]) / statistics_.deviation(array, i);
    number = static_cast<T>(std::clamp(scaled, -clip_, clip_));
    std::memcpy(numbers + i * sizeof(T), &number, sizeof number);
  }
}

void Normalize::apply(std::span<std::byte> observation) {
  statistics_.count += update_ ? 1 : 0;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    std::byte* numbers = observation.data() + spec_.observation_offset(arrays_[i]);
    if (spec_.observations[arrays_[i]].type == ElementType::float64)
      normalize<double>(i, numbers);
    else
      normalize<float>(i, numbers);
  }
}

TimeStep Normalize::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().reset(seed, observation);
  apply(observation);
  return result;
}

TimeStep Normalize::step(std::span<const double> action, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().step(action, observation);
  apply(observation);
  return result;
}

void Normalize::save_statistics(std::vector<std::byte>& out) const {
  save_value(out, statistics_.count);
  for (const auto& array : statistics_.arrays) {
    save_array<double>(out, array.mean);
    save_array<double>(out, array.squares);
  }
}

ObservationStatistics Normalize::read_saved_statistics(std::span<const std::byte>& in) const {
  ObservationStatistics read = statistics_;
  load_value(in, read.count, "count of observations");
  for (auto& array : read.arrays) {
    load_array<double>(in, array.mean, "means of the observations");
    load_array<double>(in, array.squares, "variances of the observations");
  }
  return read;
}

void Normalize::save_state(std::vector<std::byte>& out) const {
  save_statistics(out);
  Wrapper::save_state(out);
}

std::span<const std::byte> Normalize::load_state(std::span<const std::byte> in) {
  ObservationStatistics read = read_saved_statistics(in);
  in = Wrapper::load_state(in);
  statistics_ = std::move(read);
  return in;
}

void Normalize::save_lasting_state(std::vector<std::byte>& out) const {
  if (update_)
    save_statistics(out);
  Wrapper::save_lasting_state(out);
}

std::span<const std::byte> Normalize::load_lasting_state(std::span<const std::byte> in) {
  ObservationStatistics read = update_ ? read_saved_statistics(in) : statistics_;
  in = Wrapper::load_lasting_state(in);
  statistics_ = std::move(read);
  return in;
}

} // namespace troupe::env
