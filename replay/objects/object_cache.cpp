#include "replay/objects/object_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/text/hexadecimal.hpp"
#include "env/whole_file.hpp"
#include "replay/objects/copied_files.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

constexpr int kFetchers = 4;
constexpr int kTold = 10; // number of progress messages
constexpr std::chrono::milliseconds kPoll{100};
constexpr std::size_t kLongestName = 64;

std::string gigabytes(std::uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f GB", static_cast<double>(bytes) / 1e9);
  return text.data();
}

/// A lock between processes, by flock(). The system releases it when the process ends.
class FileLock {
public:
  explicit FileLock(fs::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      fail("cannot open");
  }
  ~FileLock() { ::close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool take_now(int kind) { return ::flock(descriptor_, kind | LOCK_NB) == 0; }
  void free() { ::flock(descriptor_, LOCK_UN); }
  /// Waits for the lock. Returns false if its owner shows no progress for the time `stuck`.
  bool take(int kind, std::chrono::seconds stuck) {
    auto moved = std::chrono::steady_clock::now();
    auto seen = changed();
    while (!take_now(kind)) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        fail("cannot lock");
      const auto now = std::chrono::steady_clock::now();
      if (const auto at = changed(); at != seen) {
        seen = at;
        moved = now;
      }
      if (now - moved > stuck)
        return false;
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  }
  /// Sets the modification time, which shows progress and use.
  void touch() const { ::futimens(descriptor_, nullptr); }

private:
  std::pair<std::int64_t, std::int64_t> changed() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
      fail("cannot read");
    return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::system_error(errno, std::generic_category(), what + " " + path_.string());
  }

  fs::path path_;
  int descriptor_;
};

/// The paths of one copy.
struct Places {
  fs::path folder, partial, record, lock;
};

Places places_of(const fs::path& cache, const std::string& name) {
  return {.folder = cache / name,
          .partial = cache / ("." + name + ".partial"),
          .record = cache / ("." + name + ".copied"),
          .lock = cache / ("." + name + ".lock")};
}

std::string name_of(const ObjectAddress& from, const std::vector<FolderObject>& objects) {
  std::string all = text_of(from);
  for (const auto& [name, object] : objects)
    all += '\0' + name + '\0' + std::to_string(object.bytes) + '\0' + object.etag;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(all.data(), all.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw StoreError("OpenSSL cannot compute a SHA-256");
  std::string name = fs::path(from.key.empty() ? from.bucket : from.key).filename();
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  return name.substr(0, kLongestName) + "-" + env::hexadecimal({digest.data(), 8});
}

/// Another copy in the cache. Its lock file contains its size, or the size that it will have.
struct Other {
  std::string name;
  std::uint64_t bytes = 0;
  fs::file_time_type used{};
};

std::vector<Other> others_in(const fs::path& cache, const std::string& own) {
  std::vector<Other> others;
  for (const auto& entry : fs::directory_iterator(cache)) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".lock") || file.size() < 7)
      continue;
    Other other{.name = file.substr(1, file.size() - 6)};
    const Places at = places_of(cache, other.name);
    if (other.name == own || !(fs::exists(at.folder) || fs::exists(at.partial)))
      continue;
    std::ifstream(entry.path()) >> other.bytes;
    other.used = fs::last_write_time(entry.path());
    others.push_back(std::move(other));
  }
  std::sort(others.begin(), others.end(),
            [](const Other& a, const Other& b) { return a.used < b.used; });
  return others;
}

/// Removes a copy. Returns false if it is in use.
bool remove_copy(const fs::path& cache, const std::string& name) {
  const Places at = places_of(cache, name);
  FileLock lock(at.lock);
  if (!lock.take_now(LOCK_EX))
    return false;
  fs::remove(at.record);
  fs::remove_all(at.folder);
  fs::remove_all(at.partial);
  return true;
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  if (fs::exists(folder))
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        bytes += entry.file_size();
  return bytes;
}

/// One fetch of a copy that this process has locked exclusively.
class Fetch {
public:
  Fetch(const StoreOptions& store, const ObjectAddress& from,
        const std::vector<FolderObject>& objects, const CacheOptions& options, std::string name,
        FileLock& lock)
      : store_(store),
        from_(from),
        objects_(objects),
        options_(options),
        name_(std::move(name)),
        at_(places_of(options.folder, name_)),
        lock_(lock) {
    for (const auto& one : objects_)
      total_ += static_cast<std::uint64_t>(one.object.bytes);
  }

  void run() {
    reuse();
    make_room();
    tell("fetching " + text_of(from_) + " (" + std::to_string(objects_.size()) + " objects, "
         + gigabytes(total_) + ") to " + at_.folder.string());
    fetch();
    write_record(at_.record, at_.partial, objects_, md5_);
    fs::rename(at_.partial, at_.folder);
    env::write_folder_to_disk(options_.folder);
    tell("fetched " + text_of(from_) + " to " + at_.folder.string());
  }

private:
  void tell(const std::string& line) const {
    if (options_.tell)
      options_.tell(line);
  }

  /// Keeps the intact files of an existing copy.
  void reuse() {
    if (!fs::exists(at_.folder)) {
      fs::create_directories(at_.partial);
      return;
    }
    const auto changed = changed_files(at_.record, at_.folder, objects_);
    for (const std::string& one : changed)
      fs::remove(at_.folder / one);
    tell(std::to_string(changed.size()) + " files of " + at_.folder.string()
         + " differ from what was fetched, for example " + changed.at(0) + "; fetching them again");
    fs::remove(at_.record);
    fs::remove_all(at_.partial);
    fs::rename(at_.folder, at_.partial);
  }

  void make_room() {
    FileLock cache(options_.folder / ".lock");
    if (!cache.take(LOCK_EX, options_.stuck))
      throw StoreError(options_.folder.string() + " is locked by another process for "
                       + std::to_string(options_.stuck.count()) + " s; stop it, or name another "
                       + options_.folder_key);
    auto others = others_in(options_.folder, name_);
    std::uint64_t used = 0;
    for (const Other& other : others)
      used += other.bytes;
    const std::uint64_t here = bytes_below(at_.partial);
    const auto fits = [&] {
      return used + total_ <= options_.most_bytes
             && fs::space(options_.folder).available >= total_ - std::min(total_, here);
    };
    if (total_ <= options_.most_bytes)
      for (auto other = others.begin(); other != others.end() && !fits(); ++other)
        if (remove_copy(options_.folder, other->name)) {
          used -= other->bytes;
          tell("removed " + (options_.folder / other->name).string()
               + ", the oldest copy not in "
                 "use");
        }
    if (used + total_ > options_.most_bytes)
      throw StoreError(options_.bytes_key + " is " + gigabytes(options_.most_bytes) + ": "
                       + text_of(from_) + " has " + gigabytes(total_) + " and other copies in use "
                       + gigabytes(used) + "; raise it, or name fewer objects");
    if (!fits())
      throw StoreError(options_.folder_key + " is " + options_.folder.string() + ": its disk has "
                       + gigabytes(fs::space(options_.folder).available) + " free and "
                       + text_of(from_) + " needs " + gigabytes(total_ - std::min(total_, here))
                       + " more; free some, or name a folder on another disk");
    std::ofstream(at_.lock) << total_ << ' ' << text_of(from_) << '\n';
  }

  void fetch() {
    md5_.resize(objects_.size());
    std::vector<std::jthread> threads;
    for (int i = 0; i < kFetchers; ++i)
      threads.emplace_back([this] { fetch_some(); });
    threads.clear(); // joins them
    if (failure_)
      std::rethrow_exception(failure_);
  }

  void fetch_some() {
    try {
      ObjectStore store(store_);
      const auto on_part = [this] {
        lock_.touch();
        if (failed_)
          throw StoreError("another object could not be fetched");
      };
      for (std::size_t i = next_++; i < objects_.size() && !failed_; i = next_++) {
        const auto& [name, object] = objects_[i];
        fs::create_directories((at_.partial / name).parent_path());
        md5_[i] = fetch_verified(store, from_.bucket, object, at_.partial / name, on_part);
        note(static_cast<std::uint64_t>(object.bytes));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_.exchange(true))
        failure_ = std::current_exception();
    }
  }

  void note(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    lock_.touch(); // a file that was complete already is progress, too
    const auto part = [this] { return total_ == 0 ? 0 : done_ * kTold / total_; };
    const auto before = part();
    done_ += bytes;
    if (part() > before && done_ < total_)
      tell("fetched " + gigabytes(done_) + " of " + gigabytes(total_) + " of " + text_of(from_));
    if (store_.temporary)
      if (const std::string news = store_.temporary->news(); !news.empty())
        tell(news);
  }

  const StoreOptions& store_;
  const ObjectAddress& from_;
  const std::vector<FolderObject>& objects_;
  const CacheOptions& options_;
  const std::string name_;
  const Places at_;
  FileLock& lock_;
  std::uint64_t total_ = 0;
  std::vector<std::string> md5_; // of each object; written only by the thread that fetches it
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;

  std::mutex mutex_; // guards the members below
  std::uint64_t done_ = 0;
  std::exception_ptr failure_;
};

} // namespace

CachedFolder cached_folder(const StoreOptions& store, const ObjectAddress& from,
                           const std::vector<FolderObject>& objects, const CacheOptions& options) {
  fs::create_directories(options.folder);
  const std::string name = name_of(from, objects);
  const Places at = places_of(options.folder, name);
  const auto lock = std::make_shared<FileLock>(at.lock);
  const auto take = [&](int kind) {
    if (!lock->take(kind, options.stuck))
      throw StoreError(
          at.folder.string()
          + " is incomplete or was changed, and another process has held it without progress for "
          + std::to_string(options.stuck.count()) + " s; stop that process, then start again");
  };
  // Other processes may remove the copy before it is locked.
  for (int attempt = 0; attempt < 3; ++attempt) {
    take(LOCK_SH);
    if (fs::exists(at.folder) && changed_files(at.record, at.folder, objects).empty()) {
      lock->touch();
      return {at.folder, lock};
    }
    lock->free();
    take(LOCK_EX);
    if (!fs::exists(at.folder) || !changed_files(at.record, at.folder, objects).empty())
      Fetch(store, from, objects, options, name, *lock).run();
    lock->free();
  }
  throw StoreError(at.folder.string()
                   + " is removed by other processes as soon as it is fetched; "
                     "raise "
                   + options.bytes_key);
}

} // namespace troupe::replay
