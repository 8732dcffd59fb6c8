#include "experiments/launchers/host_files.hpp"

#include <algorithm>
#include <stdexcept>

#include "experiments/launchers/command_text.hpp"

namespace troupe::experiments::launchers {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFiles = 10'000; // in one folder
constexpr std::chrono::minutes kLongestRead{10};

bool of_the_c_library(const std::string& name) {
  for (const char* part : {"libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so",
                           "libresolv.so", "libutil.so", "ld-linux", "linux-vdso", "libnss_"})
    if (name.starts_with(part))
      return true;
  return false;
}

bool of_the_system(const fs::path& path) {
  for (const char* folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"})
    if (path.string().starts_with(folder))
      return true;
  return false;
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error)
    throw std::invalid_argument(std::string("cannot copy ") + path.string()
                                + " to the hosts: " + error.message());
  return size;
}

/// The certificate authority's secret in a folder of keys, which no node needs.
constexpr const char* kStaysHere = "ca.key";

/// The files of a folder, sorted, relative to it; a single "" if the path is a file.
std::vector<fs::path> files_in(const fs::path& path) {
  if (!fs::is_directory(path))
    return {""};
  std::vector<fs::path> result;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file() || entry.path().filename() == kStaysHere)
      continue;
    if (result.size() == kMostFiles)
      throw std::invalid_argument(std::string("cannot copy ") + path.string()
                                  + " to the hosts: it has more than " + std::to_string(kMostFiles)
                                  + " files");
    result.push_back(entry.path().lexically_relative(path));
  }
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace

std::vector<std::pair<std::string, fs::path>>
libraries_of(const std::vector<std::string>& ldd_lines) {
  std::vector<std::pair<std::string, fs::path>> result;
  for (const std::string& line : ldd_lines) {
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos)
      continue;
    const std::string name =
        line.substr(line.find_first_not_of(" \t"), arrow - line.find_first_not_of(" \t"));
    const std::string rest = line.substr(arrow + 4);
    if (rest.starts_with("not found"))
      throw std::invalid_argument(std::string("the library ") + name
                                  + " that the nodes' program loads is not found on this host");
    if (!of_the_c_library(name))
      result.emplace_back(name, rest.substr(0, rest.rfind(" (0x")));
  }
  return result;
}

HostFiles::HostFiles(ChildProcesses& children, const fs::path& program, bool with_program,
                     const std::vector<fs::path>& files,
                     const std::map<fs::path, std::string>& data) {
  if (with_program) {
    files_.push_back({.kind = HostFile::Kind::program,
                      .path = program,
                      .copy = "bin/" + program.filename().string()});
    add_libraries(children, program);
    for (const auto& [path, name] : data)
      for (const fs::path& inner : files_in(path))
        files_.push_back({.kind = HostFile::Kind::data,
                          .path = path / inner,
                          .copy = name + "/" + inner.string()});
  }
  for (const fs::path& path : files) {
    Named named{.path = path.string(), .first = files_.size()};
    named.copy = "files/" + std::to_string(named_.size()) + "/"
                 + (path.has_filename() ? path : path.parent_path()).filename().string();
    for (const fs::path& inner : files_in(path))
      files_.push_back({.path = inner.empty() ? path : path / inner,
                        .copy = inner.empty() ? named.copy : named.copy + "/" + inner.string()});
    named.last = files_.size();
    named_.push_back(std::move(named));
  }
  for (HostFile& file : files_) {
    file.bytes = size_of(file.path);
    if (file.path.string().find('\n') != std::string::npos)
      throw std::invalid_argument(std::string("cannot copy ") + file.path.string()
                                  + " to the hosts: its name contains a line break");
  }
  add_sums(children);
}

void HostFiles::add_libraries(ChildProcesses& children, const fs::path& program) {
  const std::string ldd =
      find_program("ldd", "finding the libraries of the nodes' program",
                   "install libc-bin, or name ssh.program, its path on the hosts");
  const auto found = run_to_end(children, {.words = {ldd, program.string()}},
                                ChildProcesses::Clock::now() + kLongestRead);
  if (!found.end.good) // a script, or a program without libraries
    return;
  for (const auto& [name, path] : libraries_of(found.lines))
    files_.push_back(
        {.kind = of_the_system(path) ? HostFile::Kind::system_library : HostFile::Kind::library,
         .path = path,
         .copy = "lib/" + name});
}

void HostFiles::add_sums(ChildProcesses& children) {
  std::vector<std::string> words{
      find_program("sha256sum", "comparing files with the hosts'", "install coreutils"), "--"};
  std::vector<HostFile*> summed;
  for (HostFile& file : files_)
    if (file.kind != HostFile::Kind::system_library) {
      words.push_back(file.path.string());
      summed.push_back(&file);
    }
  if (summed.empty())
    return;
  const auto found =
      run_to_end(children, {.words = words}, ChildProcesses::Clock::now() + kLongestRead);
  if (!found.end.good || found.lines.size() != summed.size())
    throw std::invalid_argument(std::string("cannot read what the nodes need: ")
                                + (found.lines.empty() ? found.end.how : found.lines.back()));
  for (std::size_t i = 0; i < summed.size(); ++i) // a leading "\": the name has a backslash
    summed[i]->sha256 = found.lines[i].substr(found.lines[i].starts_with('\\') ? 1 : 0, 64);
}

std::vector<bool> HostFiles::to_copy(std::vector<bool> missing) const {
  const auto goes_together = [](const HostFile& file) {
    return file.kind == HostFile::Kind::data || file.kind == HostFile::Kind::program;
  };
  bool data = false;
  for (std::size_t i = 0; i < files_.size(); ++i)
    data = data || (missing[i] && files_[i].kind == HostFile::Kind::data);
  for (std::size_t i = 0; i < files_.size(); ++i)
    missing[i] = missing[i] || (data && goes_together(files_[i]));
  for (const Named& named : named_) {
    bool any = false;
    for (std::size_t i = named.first; i < named.last; ++i)
      any = any || missing[i];
    for (std::size_t i = named.first; i < named.last; ++i)
      missing[i] = any;
  }
  return missing;
}

std::string HostFiles::argument(const std::string& word, const std::vector<bool>& copied,
                                const std::string& folder) const {
  for (const Named& named : named_)
    if (word == named.path)
      for (std::size_t i = named.first; i < named.last; ++i)
        if (copied[i])
          return folder + "/" + named.copy;
  return word;
}

} // namespace troupe::experiments::launchers
