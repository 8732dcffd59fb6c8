#include <cstdio>
#include <cstdlib>

#include "experiments/program.hpp"

int main(int argc, char** argv) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Runs after all that is registered from here on, MPI's end among it. LibTorch's destructors,
  // which take apart its table of operators for a quarter of the time that a short command takes,
  // are left out.
  ::on_exit(
      [](int code, void*) {
        std::fflush(nullptr);
        std::_Exit(code);
      },
      nullptr);
#endif
  return troupe::experiments::run_program(argc, argv);
}
