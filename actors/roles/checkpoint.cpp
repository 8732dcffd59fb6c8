#include "actors/roles/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <google/protobuf/util/json_util.h>

#include "actors/protocol/counters.hpp"
#include "actors/roles/files.hpp"
#include "env/whole_file.hpp"
#include "replay/storage/checkpoint_reader.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

constexpr int kVersion = 3;
constexpr int kWithoutSeal = 2; // still read
constexpr const char* kSeal = "\"self_checksum\": \"";
constexpr const char* kNoSeal = "0000000000000000";
constexpr std::size_t kSealDigits = 16;

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

std::uint64_t checksum_of_text(const std::string& text) {
  return replay::checksum_of(std::as_bytes(std::span(text)));
}

std::string text_of_file(const fs::path& path) {
  env::FileReader file(path);
  std::string bytes(file.left(), '\0');
  if (!file.read(bytes.data(), bytes.size()))
    throw std::runtime_error(path.string() + " shrank while it was being read");
  return bytes;
}

std::string checksum_of_file(const fs::path& path) {
  return hexadecimal(replay::checksum_of_file(path));
}

/// Returns the text with its seal: the checksum of all its bytes, computed with zeros in place of
/// the seal.
std::string sealed(std::string text) {
  const std::string digits = hexadecimal(checksum_of_text(text));
  const std::size_t at = text.rfind(kSeal) + std::string(kSeal).size();
  text.replace(at, kSealDigits, std::string(kSealDigits - digits.size(), '0') + digits);
  return text;
}

bool seal_fits(const std::string& text) {
  const std::size_t found = text.rfind(kSeal);
  if (found == std::string::npos)
    return true;
  std::string unsealed = text;
  const std::size_t at = found + std::string(kSeal).size();
  if (at + kSealDigits > text.size())
    return false;
  unsealed.replace(at, kSealDigits, kNoSeal);
  return sealed(unsealed) == text;
}

void write_manifest(const fs::path& folder, wire::Manifest manifest) {
  manifest.set_version(kVersion);
  manifest.set_self_checksum(kNoSeal);
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(manifest, &text, options).ok())
    throw std::runtime_error("the manifest of " + folder.string() + " cannot be written as JSON");
  text = sealed(std::move(text));
  env::WholeFileWriter file(folder / "manifest.json");
  file.write(text.data(), text.size());
  file.commit();
}

bool is_complete(const fs::path& checkpoint) {
  std::error_code ignored;
  return fs::is_regular_file(checkpoint / "manifest.json", ignored);
}

std::vector<std::pair<std::int64_t, fs::path>> complete_ones(const fs::path& folder) {
  auto found = numbered_folders(folder);
  std::erase_if(found, [](const auto& one) { return !is_complete(one.second); });
  return found;
}

fs::path former_name(const fs::path& complete) {
  return complete.parent_path() / (std::string(".") + complete.filename().string() + ".former");
}

/// Exchanges the names of two folders atomically, if the file system can.
bool exchange_at_once(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

/// A run that resumes and stops before its next update saves the same parameters again. They keep
/// the score of the checkpoint that this one replaces.
void keep_score(const fs::path& former, wire::RunState& state) {
  if (state.evaluated() || !is_complete(former))
    return;
  try {
    const auto before = read_manifest(former).state();
    if (!before.evaluated() || before.updates() != state.updates())
      return;
    state.set_evaluated(true);
    state.set_evaluation_return(before.evaluation_return());
    state.set_evaluation_updates(before.evaluation_updates());
  } catch (const std::exception&) { // a damaged checkpoint has no score
  }
}

void remove_checkpoint(const fs::path& checkpoint) {
  fs::remove(checkpoint / "manifest.json");
  fs::remove_all(checkpoint);
}

/// The files are sorted.
std::vector<fs::path> files_under(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  } catch (const fs::filesystem_error& e) { // its message may lack the folder
    throw std::runtime_error("cannot list the folder " + folder.string() + ": "
                             + e.code().message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace

void commit_checkpoint(const fs::path& partial, const fs::path& complete, wire::Manifest manifest) {
  manifest.clear_files();
  const auto files = files_under(partial);
  for (const fs::path& path : files) {
    auto* file = manifest.add_files();
    file->set_name(fs::relative(path, partial).string());
    file->set_bytes(static_cast<std::int64_t>(fs::file_size(path)));
    if (path.parent_path().parent_path() != partial / "replay") // shards have their own checksums
      file->set_checksum(checksum_of_file(path));
  }
  keep_score(complete, *manifest.mutable_state());
  write_manifest(partial, std::move(manifest));
  const fs::path former = former_name(complete);
  if (fs::exists(complete)) { // has the same number of updates, from before a resumption
    if (exchange_at_once(partial, complete))
      fs::rename(partial, former);
    else
      fs::rename(complete, former);
  }
  if (fs::exists(partial))
    fs::rename(partial, complete);
  env::write_folder_to_disk(complete.parent_path());
  fs::remove_all(former);
}

void clear_checkpoint_remains(const fs::path& checkpoints) {
  std::error_code none;
  std::vector<fs::path> remains;
  for (const auto& entry : fs::directory_iterator(checkpoints, none))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(".") && (name.ends_with(".partial") || name.ends_with(".former")))
      remains.push_back(entry.path());
  for (const fs::path& path : remains) {
    const std::string number = path.stem().string().substr(1);
    const bool alone =
        path.extension() == ".former" && is_complete(path) && !is_complete(checkpoints / number);
    if (!alone) {
      fs::remove_all(path);
      continue;
    }
    fs::remove_all(checkpoints / number);
    fs::rename(path, checkpoints / number);
  }
}

wire::Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  std::string text;
  wire::Manifest manifest;
  bool read = is_complete(checkpoint);
  if (read) {
    text = text_of_file(path);
    if (!seal_fits(text))
      throw std::runtime_error(path.string()
                               + " is damaged: its bytes have another checksum; use an older "
                                 "checkpoint of the run");
    read = google::protobuf::util::JsonStringToMessage(text, &manifest).ok();
  }
  if (!read)
    throw std::runtime_error(path.string() + " is missing or not a manifest: " + checkpoint.string()
                             + " is not a complete checkpoint");
  const bool unsealed = manifest.self_checksum().empty();
  if (manifest.version() != (unsealed ? kWithoutSeal : kVersion))
    throw OtherVersion(path.string() + " has version " + std::to_string(manifest.version())
                       + (unsealed ? " and no checksum of its own" : "")
                       + ", but this program reads " + std::to_string(kVersion));
  try {
    check_counters(manifest.state());
  } catch (const std::invalid_argument& problem) {
    throw std::runtime_error(path.string() + ": " + problem.what());
  }
  for (const auto& file : manifest.files()) {
    std::error_code error;
    const auto size = fs::file_size(checkpoint / file.name(), error);
    if (error || size != static_cast<std::uintmax_t>(file.bytes()))
      throw std::runtime_error((checkpoint / file.name()).string() + " should have "
                               + std::to_string(file.bytes()) + " bytes and "
                               + (error ? std::string("is missing") : "has " + std::to_string(size))
                               + "; use an older checkpoint of the run");
  }
  return manifest;
}

void verify_checkpoint(const fs::path& checkpoint) {
  const wire::Manifest manifest = read_manifest(checkpoint);
  for (const auto& file : manifest.files())
    if (!file.checksum().empty() && checksum_of_file(checkpoint / file.name()) != file.checksum())
      throw std::runtime_error((checkpoint / file.name()).string()
                               + " is damaged: its bytes have another checksum; use an older "
                                 "checkpoint of the run");
  if (fs::exists(checkpoint / "replay"))
    for (const fs::path& shard : saved_shards(checkpoint / "replay"))
      replay::CheckpointReader(shard).verify();
}

fs::path latest_checkpoint(const fs::path& run_folder) {
  const auto found = complete_ones(run_folder / "checkpoints");
  return found.empty() ? fs::path() : found.back().second;
}

void score_checkpoint(const fs::path& checkpoint, double evaluation_return) {
  wire::Manifest manifest = read_manifest(checkpoint);
  auto& state = *manifest.mutable_state();
  state.set_evaluated(true);
  state.set_evaluation_return(evaluation_return);
  state.set_evaluation_updates(state.updates());
  write_manifest(checkpoint, std::move(manifest));
}

std::vector<bool> surplus(std::span<const ScoredCheckpoint> checkpoints, int keep, int keep_best) {
  std::vector<bool> goes(checkpoints.size(), true);
  std::vector<std::size_t> best;
  for (std::size_t i = checkpoints.size(); i-- > 0;) { // newer ones first
    if (i + static_cast<std::size_t>(keep) >= checkpoints.size())
      goes[i] = false;
    const auto& score = checkpoints[i].evaluation_return;
    if (score && !std::isnan(*score))
      best.push_back(i);
  }
  std::stable_sort(best.begin(), best.end(), [&](std::size_t a, std::size_t b) {
    return *checkpoints[a].evaluation_return > *checkpoints[b].evaluation_return;
  });
  best.resize(std::min(best.size(), static_cast<std::size_t>(keep_best)));
  for (const std::size_t i : best)
    goes[i] = false;
  return goes;
}

std::vector<ScoredCheckpoint> scored_checkpoints(const fs::path& checkpoints) {
  std::vector<ScoredCheckpoint> scored;
  for (const auto& [updates, path] : complete_ones(checkpoints)) {
    scored.push_back({.updates = updates});
    try {
      const auto state = read_manifest(path).state();
      if (state.evaluated())
        scored.back().evaluation_return = state.evaluation_return();
    } catch (const std::exception&) { // a damaged checkpoint is never among the best
    }
  }
  return scored;
}

void remove_surplus(const fs::path& checkpoints, int keep, int keep_best) {
  const auto scored = scored_checkpoints(checkpoints);
  const auto goes = surplus(scored, keep, keep_best);
  for (std::size_t i = 0; i < scored.size(); ++i)
    if (goes[i])
      remove_checkpoint(checkpoints / std::to_string(scored[i].updates));
}

fs::path set_damaged_aside(const fs::path& checkpoint) {
  const fs::path aside = checkpoint.string() + ".damaged";
  fs::remove_all(aside);
  fs::rename(checkpoint, aside);
  return aside;
}

std::vector<fs::path> saved_shards(const fs::path& replay) {
  std::vector<fs::path> shards;
  const std::string name = "shard-";
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(replay))
    found += entry.path().filename().string().starts_with(name) ? 1 : 0;
  for (std::size_t i = 0; i < found; ++i) {
    shards.push_back(replay / (name + std::to_string(i)));
    if (!fs::is_directory(shards.back()))
      throw std::runtime_error(shards.back().string() + " is missing from at least "
                               + std::to_string(found + 1)
                               + " shards; use an older checkpoint of the run");
  }
  return shards;
}

} // namespace troupe::actors
