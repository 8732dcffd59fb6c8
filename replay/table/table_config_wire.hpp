#pragma once

#include <string>

#include "replay/replay.pb.h"
#include "replay/table/table.hpp"

/// Converts signatures, configurations and statistics to and from Protobuf, for files and messages.
/// Nothing that is read is checked here: the constructor of Table does that.
namespace troupe::replay {

env::ArraySpec column_of(const wire::Column& from); // not checked
void put(const env::ArraySpec& column, wire::Column& to);

Signature signature_of(const wire::Signature& from); // not checked
void put(const Signature& signature, wire::Signature& to);

ShapePtr shape_of(const wire::Shape& from); // not checked
void put(const ItemShape& shape, wire::Shape& to);

TableConfig config_of(const wire::Config& from);
void put(const TableConfig& config, wire::Config& to);

RateLimiterConfig limiter_of(const wire::Limiter& from);
void put(const RateLimiterConfig& limiter, wire::Limiter& to);

TableStats stats_of(const wire::StatsReply& from);
void put(const TableStats& stats, wire::StatsReply& to);

/// Returns "replay.max_items was 250 and is 100, …"; empty if the configurations are equal.
std::string difference(const TableConfig& before, const TableConfig& now);

} // namespace troupe::replay
