#include "experiments/program.hpp"

int main(int argc, char** argv) {
  return troupe::experiments::run_program(argc, argv);
}
