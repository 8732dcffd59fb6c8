#pragma once
// The precompiled header of the program: its commands parse flags and write JSON (2 s a
// file instead of 8).
#include "collectives/backends/torch_header.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
