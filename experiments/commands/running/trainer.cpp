#include "experiments/commands/running/trainer.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

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

/// The libraries that the loader would load, one per line, as ldd prints them. Does not run the
/// program.
std::string libraries_of(const std::string& loader, const fs::path& path) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed; raise the limit of open files (ulimit -n)");
  const std::string program = path.string();
  const pid_t child = ::fork();
  if (child < 0)
    throw std::runtime_error("cannot start " + loader);
  if (child == 0) { // only async-signal-safe calls from here to exec
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(out[1], STDERR_FILENO);
    ::execl(loader.c_str(), loader.c_str(), "--list", program.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  std::string text;
  constexpr std::size_t kMost = 1 << 20; // bytes
  constexpr int kPatience = 30'000;      // milliseconds until the loader is killed
  char bytes[4096];
  pollfd ready{out[0], POLLIN, 0};
  while (text.size() < kMost && ::poll(&ready, 1, kPatience) > 0) {
    const ssize_t count = ::read(out[0], bytes, sizeof bytes);
    if (count <= 0)
      break;
    text.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(out[0]);
  ::kill(child, SIGKILL); // it has ended or hangs
  ::waitpid(child, nullptr, 0);
  return text;
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
  const std::string libraries = libraries_of(loader, path);
  if (const auto missing = libraries.find(" => not found"); missing != std::string::npos) {
    const auto begin = libraries.rfind('\n', missing) + 1;
    const auto first = libraries.find_first_not_of(" \t", begin);
    refuse(name, "needs " + libraries.substr(first, missing - first)
                     + ", which is not found; set LD_LIBRARY_PATH");
  }
  if (libraries.find("libtorch_cpu.so") == std::string::npos)
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
