#pragma once
// The precompiled header of tests that build networks and train them.
#include "collectives/backends/torch_header.hpp"
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
