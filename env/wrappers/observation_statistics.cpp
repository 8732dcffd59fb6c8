#include "env/wrappers/observation_statistics.hpp"

#include <cmath>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "env/whole_file.hpp"
#include "env/wrappers/narrow.hpp"

namespace troupe::env {

namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "troupe observation statistics 1";
constexpr std::uint64_t kLargestFileBytes = 64 << 20;

void check(const ObservationStatistics& statistics) {
  if (statistics.count < 0)
    throw std::runtime_error("its count is negative");
  for (const auto& array : statistics.arrays) {
    if (array.mean.size() != array.squares.size())
      throw std::runtime_error("array '" + array.name + "' has " + std::to_string(array.mean.size())
                               + " means and " + std::to_string(array.squares.size())
                               + " sums of squares");
    for (std::size_t i = 0; i < array.mean.size(); ++i)
      if (!std::isfinite(array.mean[i]) || !std::isfinite(array.squares[i]) || array.squares[i] < 0)
        throw std::runtime_error("array '" + array.name + "' has a number at " + std::to_string(i)
                                 + " that is not finite, or a negative sum of squares");
  }
}

} // namespace

ObservationStatistics empty_statistics(const EnvironmentSpec& spec) {
  ObservationStatistics made;
  for (const ArraySpec& array : spec.observations)
    if (is_floating(array.type))
      made.arrays.push_back({array.name, std::vector<double>(array.elements()),
                             std::vector<double>(array.elements())});
  return made;
}

void write_statistics(const std::filesystem::path& path, const ObservationStatistics& statistics) {
  Json arrays = Json::array();
  for (const auto& array : statistics.arrays)
    arrays.push_back(
        {{"name", array.name}, {"mean", array.mean}, {"sum_of_squares", array.squares}});
  const std::string text =
      Json{{"format", kFormat}, {"count", statistics.count}, {"arrays", arrays}}.dump(1) + "\n";
  WholeFileWriter file(path);
  file.write(text.data(), text.size());
  file.commit();
}

ObservationStatistics read_statistics(const std::filesystem::path& path) {
  FileReader file(path);
  const std::string where = "observation statistics " + path.string() + ": ";
  if (file.left() > kLargestFileBytes)
    throw std::runtime_error(where + "larger than 64 MiB");
  std::string text(file.left(), '\0');
  if (!file.read(text.data(), text.size()))
    throw std::runtime_error(where + "ends before its size");
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != kFormat)
      throw std::runtime_error("its format is " + json.at("format").dump() + ", not \"" + kFormat
                               + "\"");
    ObservationStatistics read;
    read.count = json.at("count").get<std::int64_t>();
    for (const Json& array : json.at("arrays"))
      read.arrays.push_back({array.at("name").get<std::string>(),
                             array.at("mean").get<std::vector<double>>(),
                             array.at("sum_of_squares").get<std::vector<double>>()});
    check(read);
    return read;
  } catch (const std::exception& problem) { // including those of nlohmann::json
    throw std::runtime_error(where + problem.what()
                             + "; write it again with `troupe check environment … --statistics`");
  }
}

} // namespace troupe::env
