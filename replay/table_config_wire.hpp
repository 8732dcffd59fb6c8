#pragma once

#include <string>

#include "replay/replay.pb.h"
#include "replay/table.hpp"

/// Signatures, configurations and statistics as Protobuf, for files and messages. What is read is
/// not checked: a table's constructor does that.
namespace troupe::replay {

Signature signature_of(const wire::Signature& from); // to be checked
void put(const Signature& signature, wire::Signature& to);

ShapePtr shape_of(const wire::Shape& from); // to be checked
void put(const ItemShape& shape, wire::Shape& to);

TableConfig config_of(const wire::Config& from);
void put(const TableConfig& config, wire::Config& to);

LimiterConfig limiter_of(const wire::Limiter& from);
void put(const LimiterConfig& limiter, wire::Limiter& to);

TableStats stats_of(const wire::StatsReply& from);
void put(const TableStats& stats, wire::StatsReply& to);

/// "replay.max_items was 250 and is 100, …"; empty for equal ones.
std::string difference(const TableConfig& before, const TableConfig& now);

} // namespace troupe::replay
