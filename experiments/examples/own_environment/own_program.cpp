// A program that consists of `troupe` and the environments of own_environment.cpp.
#include "experiments/program.hpp"

int main(int argc, char** argv) {
  return troupe::experiments::run_program(argc, argv);
}
