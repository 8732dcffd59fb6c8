#include "replay/service/host_checkpoints.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "env/whole_file.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

namespace fs = std::filesystem;

/// Returns the name of a table's folder, which is different for different tables.
std::string folder_name(const std::string& table) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string made = "table-";
  for (const char c : table) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-')
      made += c;
    else
      (made += '%') += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return made;
}

} // namespace

HostCheckpoints::HostCheckpoints(const std::vector<HostedTable>& tables,
                                 HostCheckpointOptions options)
    : options_(std::move(options)) {
  for (const HostedTable& table : tables)
    names_.push_back(folder_name(table.name));
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
  for (const CheckpointStatus& found :
       list_checkpoints(options_.folder, names_.front(), CheckpointCheck::names)) {
    newest_ = std::max(newest_, found.number);
    if (restored_ != 0)
      continue;
    try {
      for (std::size_t i = 0; i < names_.size(); ++i)
        CheckpointReader(path(found.number, i)).verify();
      restored_ = previous_ = found.number;
    } catch (const StorageError& damage) {
      options_.log(std::string("a checkpoint is skipped: ") + damage.what());
    }
  }
}

HostCheckpoints::~HostCheckpoints() {
  ::close(lock_);
}

fs::path HostCheckpoints::path(std::uint64_t number, std::size_t table) const {
  return options_.folder / std::to_string(number) / names_[table];
}

void HostCheckpoints::restore(std::size_t table, Table& into) const {
  if (restored_ == 0)
    return;
  const std::string difference = into.load(path(restored_, table), Table::ConfigChange::accept);
  if (!difference.empty())
    options_.log(path(restored_, table).string() + " was saved with another configuration: "
                 + difference + "; the new one applies");
}

bool HostCheckpoints::is_complete(std::uint64_t number) const {
  std::error_code error;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!fs::exists(path(number, i) / "manifest", error))
      return false;
  return true;
}

void HostCheckpoints::remove_old() {
  int kept = 0;
  for (const CheckpointStatus& found :
       list_checkpoints(options_.folder, names_.front(), CheckpointCheck::names)) {
    if (kept < options_.keep && is_complete(found.number)) {
      ++kept;
      continue;
    }
    std::error_code error;
    fs::remove_all(options_.folder / std::to_string(found.number), error);
  }
}

std::uint64_t HostCheckpoints::write(ShardHost& host) {
  const std::scoped_lock lock(writing_);
  const std::uint64_t number = ++newest_;
  const bool links = previous_ != 0 && number % kWholeCheckpointPeriod != 0;
  const fs::path folder = options_.folder / std::to_string(number);
  try {
    fs::create_directories(folder);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      TableSnapshot snapshot;
      host.with_table([&](Table& table) { snapshot = table.snapshot(); }, i);
      write_checkpoint(snapshot, path(number, i), links ? path(previous_, i) : fs::path(),
                       options_.files);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder, ignored); // the tables written so far would fill a full disk further
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
