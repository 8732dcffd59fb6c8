#include "replay/service/host_checkpoints.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <functional>
#include <set>
#include <utility>

#include "env/text/hexadecimal.hpp"
#include "env/text/number_in.hpp"
#include "env/whole_file.hpp"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".partial"; // of a checkpoint that is being written

/// Returns the name of a table's folder, which is different for different tables.
std::string folder_name(const std::string& table) {
  std::string made = "table-";
  for (const char c : table) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-')
      made += c;
    else
      made += '%' + env::hexadecimal({&byte, 1});
  }
  return made;
}

bool is_written(const fs::path& table) {
  std::error_code error;
  return fs::exists(table / kManifestName, error);
}

/// Returns the names of the folders of tables in a checkpoint.
std::set<std::string> tables_in(const fs::path& checkpoint) {
  std::set<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoint, error), end; !error && entry != end;
       entry.increment(error))
    if (is_written(entry->path()))
      found.insert(entry->path().filename().string());
  return found;
}

/// Removes the checkpoints that a killed process was writing.
void remove_partial(const fs::path& folder) {
  std::vector<fs::path> partial;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string stem = entry->path().stem().string();
    if (entry->path().extension() == kPartial
        && stem.find_first_not_of("0123456789") == std::string::npos)
      partial.push_back(entry->path());
  }
  for (const fs::path& remains : partial)
    fs::remove_all(remains, error);
}

} // namespace

std::vector<std::uint64_t> checkpoints_in(const fs::path& folder) {
  std::vector<std::uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto number = env::number_in<std::uint64_t>(name);
    if (number && std::to_string(*number) == name) // 007 is not ours
      numbers.push_back(*number);
  }
  if (error)
    throw StorageError::of_system(error.value(), "cannot list the folder " + folder.string());
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

HostCheckpoints::HostCheckpoints(HostCheckpointOptions options) : options_(std::move(options)) {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (error)
    throw StorageError::of_system(error.value(),
                                  "cannot create the folder " + options_.folder.string());
  lock_ = ::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int number = errno;
    ::close(lock_);
    if (number == EWOULDBLOCK)
      throw StorageError(
          StorageError::Kind::system,
          "the folder " + options_.folder.string()
              + " holds the checkpoints of a running process; give each process its own");
    throw StorageError::of_system(number, "cannot use the folder " + options_.folder.string());
  }
  remove_partial(options_.folder);
}

HostCheckpoints::HostCheckpoints(const std::vector<HostedTable>& tables,
                                 HostCheckpointOptions options)
    : HostCheckpoints(std::move(options)) {
  for (const HostedTable& table : tables)
    names_.push_back(folder_name(table.name));
  choose_restored();
}

/// Chooses the newest checkpoint with all tables or, if there is none, the newest with some.
void HostCheckpoints::choose_restored() {
  std::vector<std::uint64_t> complete;
  std::vector<std::uint64_t> incomplete;
  std::string why; // why the newest one is skipped
  const auto skip = [&](const std::string& reason) {
    options_.log("a checkpoint is skipped: " + reason);
    why = why.empty() ? reason : why;
  };
  for (const std::uint64_t number : checkpoints_in(options_.folder)) {
    newest_ = std::max(newest_, number);
    const std::size_t missing = missing_in(number).size();
    if (missing == 0)
      complete.push_back(number);
    else if (missing < names_.size())
      incomplete.push_back(number);
    else if (!tables_in(folder_of(number)).empty())
      skip(folder_of(number).string() + " has only other tables, not " + names_.front());
  }
  const auto restore_first = [&](const std::vector<std::uint64_t>& numbers) {
    for (const std::uint64_t number : numbers) {
      if (restored_ != 0)
        return;
      try {
        for (std::size_t i = 0; i < names_.size(); ++i)
          if (is_written(path(number, i)))
            CheckpointReader(path(number, i)).verify();
        restored_ = previous_ = number;
      } catch (const StorageError& damage) {
        skip(damage.what());
      }
    }
  };
  restore_first(complete);
  for (const std::uint64_t number : incomplete)
    if (number > restored_ && restored_ != 0)
      skip(folder_of(number).string() + " has no " + missing_in(number).front());
  restore_first(incomplete);
  if (restored_ == 0 && !why.empty())
    throw StorageError(StorageError::Kind::foreign,
                       "no checkpoint in " + options_.folder.string() + " can be restored: " + why
                           + "; serve the tables that it holds, or use another folder");
  if (restored_ != 0)
    for (const std::string& name : missing_in(restored_))
      options_.log(folder_of(restored_).string() + " has no " + name
                   + ": that table starts empty. The checkpoints without it are not removed");
}

HostCheckpoints::~HostCheckpoints() {
  ::close(lock_);
}

fs::path HostCheckpoints::folder_of(std::uint64_t number) const {
  return options_.folder / std::to_string(number);
}

fs::path HostCheckpoints::path(std::uint64_t number, std::size_t table) const {
  return folder_of(number) / names_[table];
}

void HostCheckpoints::restore(std::size_t table, Table& into) const {
  if (restored_ == 0 || !is_written(path(restored_, table)))
    return;
  const std::string difference = into.load(path(restored_, table), Table::ConfigChange::accept);
  if (!difference.empty())
    options_.log(path(restored_, table).string() + " was saved with another configuration: "
                 + difference + "; the new one applies");
}

std::vector<std::string> HostCheckpoints::missing_in(std::uint64_t number) const {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!is_written(path(number, i)))
      missing.push_back(names_[i]);
  return missing;
}

void HostCheckpoints::remove_old() {
  const std::set<std::string> ours(names_.begin(), names_.end());
  int kept = 0;
  for (const std::uint64_t number : checkpoints_in(options_.folder)) {
    std::error_code error;
    if (tables_in(folder_of(number)) == ours && ++kept > options_.keep)
      fs::remove_all(folder_of(number), error);
  }
}

std::uint64_t HostCheckpoints::write(ShardHost& host) {
  const std::scoped_lock lock(writing_);
  const std::uint64_t number = ++newest_;
  const bool links = previous_ != 0 && number % kWholeCheckpointPeriod != 0;
  const fs::path folder = folder_of(number);
  const fs::path partial = folder.string() + kPartial;
  try {
    fs::create_directories(partial);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      TableSnapshot snapshot;
      host.with_table([&](Table& table) { snapshot = table.snapshot(); }, i);
      write_checkpoint(snapshot, partial / names_[i], links ? path(previous_, i) : fs::path());
    }
    std::error_code error;
    fs::rename(partial, folder, error);
    if (error)
      throw StorageError::of_system(error.value(), "cannot rename " + partial.string());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored); // the tables written so far would fill a full disk further
    throw;
  }
  previous_ = number;
  // Makes the new folder durable before an old one is removed.
  env::write_folder_to_disk(options_.folder);
  remove_old();
  return number;
}

std::jthread HostCheckpoints::start(ShardHost& host) {
  if (options_.period.count() == 0)
    return {};
  return std::jthread([this, &host](const std::stop_token& stop) {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, stop, options_.period, [] { return false; });
      }
      if (stop.stop_requested())
        return;
      try {
        write(host);
      } catch (const std::exception& e) {
        options_.log(std::string("no checkpoint was written: ") + e.what());
      }
    }
  });
}

} // namespace troupe::replay
