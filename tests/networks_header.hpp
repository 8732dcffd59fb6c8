#pragma once
// The precompiled header of tests that build networks and train them.
#include "tests/torch_header.hpp"
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
