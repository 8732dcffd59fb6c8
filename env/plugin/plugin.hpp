#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/environment.hpp"
#include "env/text/number_in.hpp"

/// A user's environment is a class that derives from Environment and one line that names it,
///
///     TROUPE_ENVIRONMENTS({"my_task", "one sentence", troupe::env::make_own<MyTask>})
///
/// in one source file. Compiled into a shared library (-shared -fPIC -I <this checkout>, nothing to
/// link) it is a plug-in: `environment { task: "my_task" plugin: "libmine.so" }`. Compiled into a
/// program that links troupe::program it needs no plug-in. This header needs no library.
///
/// Troupe checks the following, so that the class need not: the buffer has the right size; an
/// action has the right size, is finite and within the bounds (it is clipped); step() is not called
/// outside an episode. Rewards, discounts or floating-point observations that are not finite or out
/// of range stop the episode with an error. An exception thrown by the class fails only this
/// environment.
namespace troupe::env {

/// The `key=value` pairs in the experiment's environment.options. A getter throws
/// std::invalid_argument on a value of another type. After the constructor has run, a key that no
/// getter asked for is refused.
class Options {
public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  explicit Options(Pairs pairs = {}) : pairs_(std::move(pairs)) {}

  std::string text(const std::string& key, const std::string& otherwise) const {
    asked_.insert(key);
    for (const auto& [name, value] : pairs_)
      if (name == key)
        return value;
    return otherwise;
  }
  double number(const std::string& key, double otherwise) const {
    return parse(key, otherwise, "a number");
  }
  std::int64_t integer(const std::string& key, std::int64_t otherwise) const {
    return parse(key, otherwise, "a whole number");
  }
  bool flag(const std::string& key, bool otherwise) const {
    const std::string value = text(key, otherwise ? "true" : "false");
    if (value != "true" && value != "false")
      throw bad(key, value, "true or false");
    return value == "true";
  }

  const Pairs& pairs() const { return pairs_; }
  const std::set<std::string>& asked() const { return asked_; }

private:
  static std::invalid_argument bad(const std::string& key, const std::string& value,
                                   const std::string& rule) {
    return std::invalid_argument("option " + key + " is '" + value + "'; it must be " + rule);
  }
  template <typename T>
  T parse(const std::string& key, T otherwise, const char* rule) const {
    const std::string value = text(key, "");
    if (value.empty())
      return otherwise;
    const auto number = number_in<T>(value);
    if (!number || *number - *number != T(0))
      throw bad(key, value, rule);
    return *number;
  }

  Pairs pairs_;
  mutable std::set<std::string> asked_;
};

/// Incremented with every change of Environment, its specs, Options or the declarations below.
inline constexpr std::uint32_t kPluginVersion = 2;
inline constexpr std::uint64_t kPluginMagic = 0x65707572742d7872ULL;

#define TROUPE_TEXT_OF(x) #x
#define TROUPE_VALUE_OF(x) TROUPE_TEXT_OF(x)
#ifdef _GLIBCXX_DEBUG
#define TROUPE_DEBUG_CONTAINERS ", checked containers"
#else
#define TROUPE_DEBUG_CONTAINERS ""
#endif
/// Must be equal on both sides for C++ objects to cross the boundary: the C++ ABI and the standard
/// library.
inline constexpr char kPluginFingerprint[] =
    "C++ ABI " TROUPE_VALUE_OF(__GXX_ABI_VERSION) ", libstdc++ " TROUPE_VALUE_OF(
        _GLIBCXX_RELEASE) ", new strings " TROUPE_VALUE_OF(_GLIBCXX_USE_CXX11_ABI)
        TROUPE_DEBUG_CONTAINERS;

/// One environment of a library or program. `make` returns a new object, or throws.
struct PluginEnvironment {
  const char* name;
  const char* help; // one sentence
  Environment* (*make)(const Options& options);
};

/// The result of the entry point. The first three members never change or move, so that any version
/// recognises any other.
struct PluginTable {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t interface_bytes;
  const char* fingerprint;
  const PluginEnvironment* environments;
  std::uint64_t count;
};

inline constexpr std::uint32_t kInterfaceBytes =
    sizeof(EnvironmentSpec) + 1000 * sizeof(TimeStep) + 100'000 * sizeof(Options);

/// For a class whose constructor takes Options or nothing.
template <typename T>
Environment* make_own(const Options& options) {
  if constexpr (std::is_constructible_v<T, const Options&>)
    return std::make_unique<T>(options).release();
  else
    return std::make_unique<T>().release();
}

} // namespace troupe::env

/// Defines the entry point. Use it once per shared library or program.
#define TROUPE_ENVIRONMENTS(...)                                                                   \
  extern "C" __attribute__((visibility("default"))) const ::troupe::env::PluginTable*              \
  troupe_environments() {                                                                          \
    static constexpr ::troupe::env::PluginEnvironment kEnvironments[] = {__VA_ARGS__};             \
    static constexpr ::troupe::env::PluginTable kTable = {::troupe::env::kPluginMagic,             \
                                                          ::troupe::env::kPluginVersion,           \
                                                          ::troupe::env::kInterfaceBytes,          \
                                                          ::troupe::env::kPluginFingerprint,       \
                                                          kEnvironments,                           \
                                                          sizeof kEnvironments                     \
                                                              / sizeof kEnvironments[0]};          \
    return &kTable;                                                                                \
  }                                                                                                \
  static_assert(true)
