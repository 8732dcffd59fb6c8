// A program that is `troupe` with the environments of own_environment.cpp linked in.
#include "experiments/program.hpp"

int main(int argc, char** argv) {
  return troupe::experiments::run_program(argc, argv);
}
