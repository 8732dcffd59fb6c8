#include "actors/run/checkpoint_copies.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <pthread.h>

#include "actors/roles/files.hpp"
#include "replay/objects/folder_copies.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLastFile = "manifest.json";
constexpr std::size_t kMostMessages = 100;

} // namespace

CheckpointCopies::CheckpointCopies(fs::path run_folder, CopyOptions options)
    : folder_(std::move(run_folder)),
      options_(std::move(options)),
      store_(options_.store),
      thread_([this](const std::stop_token& stop) { work(stop); }) {
  pthread_setname_np(thread_.native_handle(), "copies");
}

CheckpointCopies::~CheckpointCopies() {
  store_.stop();
  thread_.request_stop();
  thread_.join();
  for (const auto& job : {waiting_, manifest_})
    if (job)
      drop(*job);
}

CheckpointCopies::Job CheckpointCopies::linked(const fs::path& checkpoint) {
  Job job{.checkpoint = checkpoint, .links = checkpoint};
  const fs::path links = checkpoint.parent_path()
                         / ("." + checkpoint.filename().string() + "-"
                            + std::to_string(++links_made_) + ".copy.partial");
  std::error_code error;
  fs::remove_all(links, error);
  fs::copy(checkpoint, links, fs::copy_options::recursive | fs::copy_options::create_hard_links,
           error);
  if (error)
    fs::remove_all(links, error);
  else
    job.links = links;
  return job;
}

void CheckpointCopies::drop(const Job& job) const {
  std::error_code ignored;
  if (job.links != job.checkpoint)
    fs::remove_all(job.links, ignored);
}

void CheckpointCopies::offer(const fs::path& checkpoint) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_) {
      drop(*waiting_);
      if (waiting_->checkpoint != checkpoint)
        tell("warning", waiting_->checkpoint.string()
                            + " was not copied to the store: a newer checkpoint takes its place");
    }
    waiting_ = linked(checkpoint);
  }
  changed_.notify_all();
}

void CheckpointCopies::offer_manifest(const fs::path& checkpoint) {
  {
    const std::lock_guard lock(mutex_);
    manifest_ = Job{.checkpoint = checkpoint, .links = checkpoint, .manifest_only = true};
  }
  changed_.notify_all();
}

void CheckpointCopies::finish(std::chrono::seconds deadline) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, deadline, [this] { return !busy_ && !waiting_ && !manifest_; }))
    return;
  ++failed_;
  tell("error", "the last checkpoint is not in " + text_of(options_.run) + " after "
                    + std::to_string(deadline.count()) + " s; it is in " + folder_.string());
}

bool CheckpointCopies::idle() const {
  const std::lock_guard lock(mutex_);
  return !busy_ && !waiting_ && !manifest_;
}

std::int64_t CheckpointCopies::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::vector<CheckpointCopies::Message> CheckpointCopies::messages() {
  const std::lock_guard lock(mutex_);
  if (options_.store.temporary)
    if (const std::string news = options_.store.temporary->news(); !news.empty())
      tell("warning", news);
  return std::exchange(messages_, {});
}

void CheckpointCopies::tell(const std::string& level, const std::string& text) {
  if (messages_.size() >= kMostMessages)
    messages_.erase(messages_.begin());
  messages_.push_back({level, text});
}

void CheckpointCopies::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return waiting_ || manifest_; })) {
    const Job job = *std::exchange(waiting_ ? waiting_ : manifest_, std::nullopt);
    busy_ = true;
    lock.unlock();
    std::string problem;
    try {
      copy(job);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    lock.lock();
    drop(job);
    busy_ = false;
    if (!problem.empty() && !stop.stop_requested()) {
      ++failed_;
      tell("error", job.checkpoint.string() + " was not copied to the store: " + problem
                        + "; training continues");
    }
    changed_.notify_all();
  }
}

void CheckpointCopies::copy(const Job& job) {
  const auto number = number_of(job.checkpoint.filename().string());
  const auto there = below(options_.run, "checkpoints/" + std::to_string(number));
  if (job.manifest_only) {
    if (copied_.contains(number))
      store_.put_file(below(there, kLastFile), job.links / kLastFile);
    return;
  }
  for (const char* name : {"origin.json", "metrics.csv", "metrics.jsonl", "config.textproto"})
    if (fs::exists(folder_ / name))
      store_.put_file(below(options_.run, name), folder_ / name);
  copied_.erase(number);
  replay::upload_folder(store_, job.links, there, kLastFile);
  copied_.insert(number);
  remove_older(number);
}

void CheckpointCopies::remove_older(std::int64_t newest) {
  const auto folder = below(options_.run, "checkpoints");
  std::map<std::int64_t, bool> found; // number of each copy, and whether it has its manifest
  for (const auto& object : store_.list(folder)) {
    const std::string name = object.key.substr(folder.key.size() + 1);
    const auto slash = std::min(name.find('/'), name.size());
    if (const auto number = number_of(name.substr(0, slash)); number >= 0)
      found[number] = found[number] || name.substr(slash) == std::string("/") + kLastFile;
  }
  std::set<std::int64_t> kept;
  for (auto one = found.rbegin();
       one != found.rend() && std::ssize(kept) < std::max(1, options_.keep); ++one)
    if (one->second)
      kept.insert(one->first);
  if (options_.keep_best > 0)
    for (const auto& [number, complete] : found)
      if (complete
          && (!copied_.contains(number) || // its score is unknown here
              fs::exists(folder_ / "checkpoints" / std::to_string(number) / kLastFile)))
        kept.insert(number);
  for (const auto& [number, complete] : found)
    if (number < newest && !kept.contains(number))
      replay::remove_folder(store_, below(folder, std::to_string(number)), kLastFile);
}

} // namespace troupe::actors
