// Writes pairs of pictures and their structural_similarity(), for likeness_python.py:
// <folder>/<n>.a and .b (raw bytes), and on standard output "n height width channels similarity".
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "env/random.hpp"
#include "env/render/likeness.hpp"

using namespace troupe::env;

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  Random random(1);
  const auto write = [&](int number, const char* end, const std::vector<std::uint8_t>& bytes) {
    std::ofstream(std::string(argv[1]) + "/" + std::to_string(number) + end, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  for (int number = 0; number < 12; ++number) {
    const PictureShape shape{7 + static_cast<int>(random.uniform(0, 80)),
                             7 + static_cast<int>(random.uniform(0, 80)), number % 2 == 0 ? 3 : 1};
    std::vector<std::uint8_t> a(shape.numbers());
    std::vector<std::uint8_t> b(a.size());
    double level = 128;
    for (std::size_t i = 0; i < a.size(); ++i) {
      level = std::min(250., std::max(5., level + random.uniform(-20, 20)));
      a[i] = static_cast<std::uint8_t>(level);
      b[i] = static_cast<std::uint8_t>(
          std::min(255., std::max(0., level + random.uniform(-1, 1) * number * number)));
    }
    write(number, ".a", a);
    write(number, ".b", b);
    std::printf("%d %d %d %d %.17g\n", number, shape.height, shape.width, shape.channels,
                structural_similarity(a, b, shape));
  }
  return 0;
}
