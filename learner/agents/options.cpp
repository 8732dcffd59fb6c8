#include "learner/agents/options.hpp"

#include <cstdio>
#include <type_traits>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

namespace troupe::learner {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<std::vector<T>> : std::true_type {};

/// Reads a field that is set in the message.
template <class T>
void read(const Message& from, const Reflection& view, const FieldDescriptor* field, T& to) {
  if constexpr (is_list<T>::value) {
    const auto& values = view.GetRepeatedFieldRef<typename T::value_type>(from, field);
    to.assign(values.begin(), values.end());
  } else if constexpr (std::is_same_v<T, bool>)
    to = view.GetBool(from, field);
  else if constexpr (std::is_same_v<T, int>)
    to = view.GetInt32(from, field);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    to = view.GetInt64(from, field);
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    to = view.GetUInt64(from, field);
  else if constexpr (std::is_same_v<T, double>)
    to = view.GetDouble(from, field);
  else
    to = view.GetString(from, field);
}

std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(double value) {
  return number_text(value);
}
std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(const std::filesystem::path& value) {
  return value.string();
}
template <class T>
requires std::is_integral_v<T> std::string text_of(T value) {
  return std::to_string(value);
}
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values)
    text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

} // namespace

void assign(const Message& block, const Members& members) {
  for (const Member& member : members) {
    const Message* holder = &block;
    std::string key = member.key;
    if (const auto dot = key.find('.'); dot != std::string::npos) {
      const auto* inner = block.GetDescriptor()->FindFieldByName(key.substr(0, dot));
      holder = &block.GetReflection()->GetMessage(block, inner);
      key = key.substr(dot + 1);
    }
    const auto* field = holder->GetDescriptor()->FindFieldByName(key);
    const auto& view = *holder->GetReflection();
    const bool given =
        field->is_repeated() ? view.FieldSize(*holder, field) > 0 : view.HasField(*holder, field);
    if (given)
      std::visit([&](auto* value) { read(*holder, view, field, *value); }, member.value);
  }
}

std::map<std::string, std::string> texts(const Members& members) {
  std::map<std::string, std::string> made;
  for (const Member& member : members)
    made[member.key] = std::visit([](const auto* value) { return text_of(*value); }, member.value);
  return made;
}

std::string number_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

} // namespace troupe::learner
