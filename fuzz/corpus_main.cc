// Runs a fuzz target without libFuzzer: every file of the corpus, then so many inputs made of them, the same each time.
//   TARGET FOLDER MUTATIONS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"

namespace {

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string Mutated(const std::vector<std::string>& corpus, std::mt19937* random) {
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : (*random)() % limit; };
  std::string input = corpus[below(corpus.size())];
  for (size_t left = 1 + below(4); left > 0; --left) {
    const size_t at = below(input.size() + 1);
    const std::string& other = corpus[below(corpus.size())];
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>((*random)());
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 2:
        input.erase(at, 1 + below(16));
        break;
      case 3:
        input.insert(at, input.substr(below(input.size() + 1), below(64)));
        break;
      case 4:
        input.insert(at, other.substr(below(other.size() + 1), below(256)));
        break;
      default:
        input.resize(at);
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER MUTATIONS\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    std::fprintf(stderr, "%s\n", file.filename().c_str());  // the last one named is the one that crashed
    Run(corpus.back());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s is empty\n", argv[1]);
    return 1;
  }
  std::mt19937 random(20261115);
  const int mutations = std::atoi(argv[2]);
  for (int i = 0; i < mutations; ++i) {
    const std::string input = Mutated(corpus, &random);
    std::ofstream("last-" + std::filesystem::path(argv[0]).filename().string(), std::ios::binary) << input;
    Run(input);
  }
  std::fprintf(stderr, "%zu files and %d mutations\n", corpus.size(), mutations);
  return 0;
}
