#pragma once
// The passes of an Mlp over parts of the rows, on several threads. Only mlp.cpp includes it.

#include <functional>
#include <vector>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// Chooses tape.used_parts for a pass, and prepares so many of tape.parts.
void split_rows(const std::vector<LayerTensors>& parameters, Tape& tape);

/// Packs the weights that products with AMX read, which only one thread may do, if the tape uses
/// parts.
void pack_weights(const std::vector<LayerTensors>& parameters, const Tape& tape, bool transposed);

/// Calls pass() for each part that the tape uses, each on its own thread.
void over_parts(Tape& tape, const std::function<void(RowPart&)>& pass);

/// The tensors to which a part writes its share of the gradients.
std::vector<LayerTensors> gradients_of(RowPart& part, const std::vector<LayerTensors>& gradients);

/// Adds the parts' shares to those of the first part.
void add_gradients(const Tape& tape, std::vector<LayerTensors>& gradients, bool with_weights);

} // namespace troupe::learner
