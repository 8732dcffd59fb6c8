#pragma once
// The shared precompiled header: what nearly every file that touches LibTorch includes, and no more
// (2 s a file instead of 7).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <torch/types.h>
