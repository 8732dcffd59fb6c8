#include "actors/roles/shard_snapshots.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "actors/roles/files.hpp"
#include "env/whole_file.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKept = 2;
constexpr std::int64_t kNumbersPerIncarnation = 1'000'000;
constexpr const char* kTakenOver = "taken-over-by-"; // name of an empty file, before a number

/// The incarnation that the entry of the folder says has taken over; -1 for other entries.
std::int64_t owner_in(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return name.starts_with(kTakenOver) ? number_of(name.substr(std::string(kTakenOver).size())) : -1;
}

} // namespace

ShardSnapshots::ShardSnapshots(fs::path folder, std::uint64_t incarnation)
    : folder_(std::move(folder)),
      incarnation_(incarnation),
      number_(static_cast<std::int64_t>(incarnation) * kNumbersPerIncarnation) {
  if (incarnation == 0)
    fs::remove_all(folder_);
  fs::create_directories(folder_);
  // Before the search. A full disk, on which no file can be made, only keeps the old rule.
  const std::ofstream mark(folder_ / (kTakenOver + std::to_string(incarnation)));
  for (const auto& [number, path] : numbered_folders(folder_)) {
    number_ = std::max(number_, number);
    found_.insert(found_.begin(), path);
  }
}

fs::path ShardSnapshots::next() {
  return folder_ / std::to_string(++number_);
}

bool ShardSnapshots::is_superseded() const {
  const fs::directory_iterator entries(folder_);
  return std::any_of(begin(entries), end(entries), [this](const fs::directory_entry& entry) {
    return owner_in(entry) > static_cast<std::int64_t>(incarnation_);
  });
}

void ShardSnapshots::write(const replay::TableSnapshot& table, const fs::path& to,
                           const fs::path& previous) const {
  const fs::path complete = folder_ / ("." + to.filename().string() + ".complete");
  replay::write_checkpoint(table, complete, previous);
  if (is_superseded()) {
    fs::remove_all(complete);
    throw std::runtime_error("this shard writes no more snapshots: another process has taken over "
                             + folder_.string());
  }
  fs::rename(complete, to);
  env::write_folder_to_disk(folder_); // before an old snapshot is removed
}

void ShardSnapshots::remove_old() const {
  const auto all = numbered_folders(folder_);
  std::error_code error; // remove as many as possible
  for (std::size_t i = 0; i + kKept < all.size(); ++i)
    fs::remove_all(all[i].second, error);
}

} // namespace troupe::actors
