#include "experiments/commands/running/trainer.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "experiments/launchers/child_processes.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& program, const std::string& why) {
  throw std::invalid_argument("the program " + program + " " + why);
}

fs::path along_path(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return name;
  const char* const list = std::getenv("PATH");
  const std::string folders = list ? list : "";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path candidate = fs::path(folders.substr(begin, end - begin)) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate))
      return candidate;
    begin = end + 1;
  }
  refuse(name, "is not on the PATH; give its path, e.g. ./" + name);
}

/// The dynamic loader that an ELF file names; empty for a static program.
std::string loader_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  Elf64_Ehdr header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0
      || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    refuse(path.string(), "is not a 64-bit Linux program; a script cannot be made data-parallel, "
                          "give the LibTorch program that it starts");
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    in.seekg(
        static_cast<std::streamoff>(header.e_phoff + static_cast<std::uint64_t>(i) * sizeof part));
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (!in)
      break;
    if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096)
      continue;
    std::string name(part.p_filesz, '\0');
    in.seekg(static_cast<std::streamoff>(part.p_offset));
    in.read(name.data(), static_cast<std::streamsize>(name.size()));
    return in ? name.substr(0, name.find('\0')) : "";
  }
  return "";
}

constexpr std::chrono::seconds kLoaderDeadline{30};

/// The libraries that the loader would load, one per line, as ldd prints them. Does not run the
/// program.
std::vector<std::string> libraries_of(const std::string& loader, const fs::path& path) {
  launchers::ChildProcesses children;
  auto listed = launchers::run_to_end(children, {.words = {loader, "--list", path.string()}},
                                      std::chrono::steady_clock::now() + kLoaderDeadline);
  if (listed.late)
    refuse(path.string(), "could not be examined: " + loader + " has not listed its libraries in "
                              + std::to_string(kLoaderDeadline.count()) + " s");
  return std::move(listed.lines);
}

} // namespace

fs::path find_trainer(const std::string& name) {
  const fs::path path = along_path(name);
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    refuse(name, "does not exist");
  if (!S_ISREG(about.st_mode) || ::access(path.c_str(), X_OK) != 0)
    refuse(name, "is not executable (chmod +x)");
  if ((about.st_mode & (S_ISUID | S_ISGID)) != 0)
    refuse(name, "is setuid or setgid: nothing can be preloaded into such a program; remove the "
                 "bit (chmod ug-s)");
  const std::string loader = loader_of(path);
  if (loader.empty())
    refuse(name, "is linked statically: its optimizers cannot be reached; link it against LibTorch "
                 "as a shared library");
  bool has_torch = false;
  for (const std::string& line : libraries_of(loader, path)) {
    if (const auto missing = line.find(" => not found"); missing != std::string::npos) {
      const auto first = std::min(line.find_first_not_of(" \t"), missing);
      refuse(name, "needs " + line.substr(first, missing - first)
                       + ", which is not found; set LD_LIBRARY_PATH");
    }
    has_torch = has_torch || line.find("libtorch_cpu.so") != std::string::npos;
  }
  if (!has_torch)
    refuse(name, "is not linked to LibTorch's libtorch_cpu.so; only such programs can be made "
                 "data-parallel (Python programs: torch.nn.parallel.DistributedDataParallel)");
  return fs::absolute(path);
}

fs::path find_preload_library() {
  constexpr const char* kName = "libtroupe_transparent.so";
  std::error_code ignored;
  const auto folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string tried;
  for (const fs::path& path : {folder / kName, folder.parent_path() / "lib" / kName}) {
    if (fs::exists(path, ignored))
      return path;
    tried += (tried.empty() ? "" : ", ") + path.string();
  }
  throw std::runtime_error(std::string(kName) + " was not found; tried " + tried
                           + "; build or install all of Troupe");
}

} // namespace troupe::experiments::commands
