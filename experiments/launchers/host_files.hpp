#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"

namespace troupe::experiments::launchers {

/// A file that a node needs on its host.
struct HostFile {
  enum class Kind : std::uint8_t {
    program,        // the same file at the same path, or a copy
    library,        // likewise
    system_library, // any file at this path, or a copy
    data,           // as the program's, which is copied with it
    file,           // the same file at the same path, or a copy that its owner alone reads
  };
  Kind kind = Kind::file;
  std::filesystem::path path = {}; // on this host
  std::string copy = {};           // within the private folder of a host
  std::uint64_t bytes = 0;
  std::string sha256 = {}; // in hex; "" of a system library
};

/// What a program and its arguments need. Immutable: any thread.
class HostFiles {
public:
  /// With `with_program`, adds the program and its libraries except the C library's. Throws
  /// std::invalid_argument for a file that cannot be read or a library that is not found.
  HostFiles(ChildProcesses& children, const std::filesystem::path& program, bool with_program,
            const std::vector<std::filesystem::path>& files,
            const std::map<std::filesystem::path, std::string>& data = {});

  const std::vector<HostFile>& all() const { return files_; }

  /// Which of all() to copy to a host without the `missing` files; data needs a copy of the
  /// program.
  std::vector<bool> to_copy(std::vector<bool> missing) const;

  /// Returns an argument of a node; a path of a file or folder that was copied to `folder` becomes
  /// the path there.
  std::string argument(const std::string& word, const std::vector<bool>& copied,
                       const std::string& folder) const;

private:
  void add_libraries(ChildProcesses& children, const std::filesystem::path& program);
  void add_sums(ChildProcesses& children);

  /// A path that arguments may be, and its files: [first, last) of files_.
  struct Named {
    std::string path = {};
    std::string copy = {};
    std::size_t first = 0;
    std::size_t last = 0;
  };
  std::vector<HostFile> files_;
  std::vector<Named> named_;
};

/// From the output of ldd: name and path of each library; the C library's own are left out. Throws
/// std::invalid_argument naming the library that is not found.
std::vector<std::pair<std::string, std::filesystem::path>>
libraries_of(const std::vector<std::string>& ldd_lines);

} // namespace troupe::experiments::launchers
