#pragma once
// The precompiled header of tests that build and train networks, and of programs without Troupe.
#include "collectives/backends/torch_header.hpp"
#include <torch/torch.h>
