#pragma once
// The precompiled header of tests that build networks and train them, and of programs that know
// nothing of Troupe.
#include "collectives/backends/torch_header.hpp"
#include <torch/torch.h>
