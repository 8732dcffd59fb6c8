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
  /// A host that does not have the same file at the same path gets a copy.
  enum class Kind : std::uint8_t {
    program,
    library,
    system_library, // any file at the path will do
    data,           // copied together with the program
    file,           // only its owner can read the copy
  };
  Kind kind = Kind::file;
  std::filesystem::path path = {}; // on this host
  std::string copy = {};           // path relative to the private folder on a host
  std::uint64_t bytes = 0;
  std::string sha256 = {}; // hexadecimal; "" for a system library
};

/// The files that a program and its arguments need. Immutable, so any thread may use it.
class HostFiles {
public:
  /// With `with_program`, includes the program and its libraries, except those of the C library.
  /// Throws std::invalid_argument for a file that cannot be read or a library that is not found.
  HostFiles(ChildProcesses& children, const std::filesystem::path& program, bool with_program,
            const std::vector<std::filesystem::path>& files,
            const std::map<std::filesystem::path, std::string>& data = {});

  const std::vector<HostFile>& all() const { return files_; }

  /// Says which of all() to copy to a host that lacks the `missing` files. If a data file is
  /// missing, the program and all data are copied together. If a file of a folder is missing, the
  /// whole folder is copied, because the node gets the path of the copy in place of the folder's.
  std::vector<bool> to_copy(std::vector<bool> missing) const;

  /// Translates an argument of a node: the path of a file or folder that was copied to `folder`
  /// becomes its path there.
  std::string argument(const std::string& word, const std::vector<bool>& copied,
                       const std::string& folder) const;

private:
  void add_libraries(ChildProcesses& children, const std::filesystem::path& program);
  void add_sums(ChildProcesses& children);

  /// A path that may occur as an argument, and its files: [first, last) of files_.
  struct Named {
    std::string path = {};
    std::string copy = {};
    std::size_t first = 0;
    std::size_t last = 0;
  };
  std::vector<HostFile> files_;
  std::vector<Named> named_;
};

/// Parses the output of ldd. Returns the name and path of each library, except those of the C
/// library. Throws std::invalid_argument that names a library that is not found.
std::vector<std::pair<std::string, std::filesystem::path>>
libraries_of(const std::vector<std::string>& ldd_lines);

} // namespace troupe::experiments::launchers
