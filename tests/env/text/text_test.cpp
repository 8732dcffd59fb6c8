#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "env/text/hexadecimal.hpp"
#include "env/text/joined.hpp"
#include "env/text/json_depth.hpp"
#include "env/text/number_in.hpp"

namespace troupe::env {
namespace {

TEST_CASE("A number is read only if it is the whole text and fits its type") {
  CHECK(number_in<int>("-12") == -12);
  CHECK(number_in<double>("2.5e3") == 2500);
  CHECK(number_in<std::uint8_t>("255") == 255);
  for (const std::string text : {"", " 1", "1 ", "+1", "1x", "x", "-1", "256"})
    CHECK_FALSE(number_in<std::uint8_t>(text).has_value());
}

TEST_CASE("A number outside its bounds is refused, and so is NaN") {
  CHECK(number_in<int>("1", 1, 3) == 1);
  CHECK(number_in<int>("3", 1, 3) == 3);
  CHECK_FALSE(number_in<int>("0", 1, 3).has_value());
  CHECK_FALSE(number_in<int>("4", 1, 3).has_value());
  CHECK_FALSE(number_in<double>("inf", 0, 1e6).has_value());
  CHECK_FALSE(number_in<double>("nan", 0, 1e6).has_value());
}

TEST_CASE("Texts and numbers are joined with commas, the last one with another word") {
  const std::vector<std::string> words{"a", "", "c"};
  CHECK(joined(words) == "a, , c");
  CHECK(joined(words, " or ") == "a,  or c");
  CHECK(joined(std::vector<std::string>{}).empty());
  CHECK(joined(std::vector<std::string>{"a"}, " and ") == "a");
  CHECK(joined(std::set<int>{2, 1}, " and ") == "1 and 2");
  CHECK(joined(std::map<std::string, int>{{"a", 3}, {"b", 4}}, ", ",
               &std::pair<const std::string, int>::second)
        == "3, 4");
}

TEST_CASE("The depth of a JSON text counts brackets outside strings") {
  CHECK_FALSE(is_deeper_than("7", 0));
  CHECK_FALSE(is_deeper_than(R"({"a": [1, {}, [], "[[[\"[[\\"]})", 3));
  CHECK(is_deeper_than(R"({"a": [1, {}, [], "[[[\"[[\\"]})", 2));
  CHECK_FALSE(is_deeper_than("[][][]{}", 1));
  CHECK(is_deeper_than(std::string(1'000'000, '['), 999'999));
  CHECK_FALSE(is_deeper_than("\"[[\\", 0)); // cut off
}

TEST_CASE("Bytes are written as two lower-case hexadecimal digits each") {
  CHECK(hexadecimal(std::array<unsigned char, 3>{0x0f, 0xa0, 0xff}) == "0fa0ff");
}

} // namespace
} // namespace troupe::env
