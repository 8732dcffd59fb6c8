// Stands in for `troupe node`: prints where it runs, starts one process, listens, holds a segment
// of shared memory, and stops on SIGTERM. Usage: stand_in_node node [--keys DIR] [--fail CODE]
// [--stubborn] [--runaway]
//   --fail: prints a message and exits with CODE
//   --stubborn: ignores SIGTERM
//   --runaway: its process leaves the process group and stays alive
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

extern "C" int stand_in_answer();

namespace {

void show_keys(const char* folder) {
  struct stat about {};
  ::stat(folder, &about);
  std::printf("keys %s mode %o\n", folder, about.st_mode & 07777);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ::stat(entry.path().c_str(), &about);
    std::string text;
    std::ifstream(entry.path()) >> text;
    std::printf("key %s mode %o of %zu letters\n", entry.path().filename().c_str(),
                about.st_mode & 07777, text.size());
  }
}

pid_t start_role(bool orphan, bool runaway) {
  const pid_t parent = ::getpid();
  const pid_t role = ::fork();
  if (role == 0) {
    if (!orphan && !runaway) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent)
        ::_exit(1); // the node was killed before the line above
    }
    if (runaway)
      ::setsid();
    while (true)
      ::pause();
  }
  return role;
}

} // namespace

int main(int count, char** words) {
  bool stubborn = false;
  bool runaway = false;
  bool orphan = false;
  char host[256] = "";
  char program[4096] = "";
  ::gethostname(host, sizeof host - 1);
  (void)!::readlink("/proc/self/exe", program, sizeof program - 1);
  const char* name = std::getenv("TROUPE_NODE_NAME");
  std::printf("%s on %s, process %d, answer %d\n", name == nullptr ? "nobody" : name, host,
              ::getpid(), stand_in_answer());
  std::printf("program %s\n", program);
  std::string data;
  std::ifstream(std::filesystem::path(program).parent_path() / "../models/one") >> data;
  std::printf("data %s\n", data.c_str());
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    stubborn = stubborn || word == "--stubborn";
    orphan = orphan || word == "--orphan";
    runaway = runaway || word == "--runaway";
    if (word == "--keys")
      show_keys(words[i + 1]);
    if (word == "--fail") {
      std::printf("cannot find its head\n");
      return std::atoi(words[i + 1]);
    }
  }
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const pid_t role = start_role(orphan, runaway);
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  ::listen(listening, 1);
  const std::string segment = "/troupe-stand-in-" + std::to_string(::getpid());
  ::close(::shm_open(segment.c_str(), O_CREAT | O_RDWR, 0600));
  std::printf("works\n");
  std::fflush(stdout);
  int signal = 0;
  do
    ::sigwait(&set, &signal);
  while (stubborn);
  ::shm_unlink(segment.c_str());
  ::kill(role, SIGKILL);
  ::waitpid(role, nullptr, 0);
  std::printf("goes\n");
  return 0;
}
