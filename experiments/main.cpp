#include "env/quick_exit.hpp"
#include "experiments/program.hpp"

int main(int argc, char** argv) {
  troupe::exit_without_destructors();
  return troupe::experiments::run_program(argc, argv);
}
