#ifndef $MACRO$_WITHOUT_MAIN
// Runs the kernel on data of its own: once for the result, held against the reference where that is a kernel, and then in a loop.
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>

#pragma nv_diag_suppress 177  // where there is no reference kernel, nothing is compared

namespace $NAMESPACE$ {
namespace {

using Host = std::vector<std::vector<unsigned char>>;  // the bytes of each tensor

// How an element of a type is written and read.
struct Format {
  void (*write)(unsigned char* bytes, int64_t index, double value);
  double (*read)(const unsigned char* bytes, int64_t index);
};

// By way of a type that a double becomes: float for the narrow floats.
template <typename Value, typename Wide>
void WriteAs(unsigned char* bytes, int64_t index, double value) {
  const Value stored = static_cast<Value>(static_cast<Wide>(value));
  std::memcpy(bytes + index * sizeof(Value), &stored, sizeof(Value));
}

template <typename Value, typename Wide>
double ReadAs(const unsigned char* bytes, int64_t index) {
  Value stored;
  std::memcpy(&stored, bytes + index * sizeof(Value), sizeof(Value));
  return static_cast<double>(static_cast<Wide>(stored));
}

template <typename Value, typename Wide = double>
Format FormatAs() {
  return {&WriteAs<Value, Wide>, &ReadAs<Value, Wide>};
}

void WriteHalfByte(unsigned char* bytes, int64_t index, double value) {
  const unsigned half = static_cast<unsigned>(static_cast<int>(value)) & 15;
  bytes[index / 2] |= static_cast<unsigned char>(index % 2 == 0 ? half : half << 4);
}

double ReadHalfByte(const unsigned char* bytes, int64_t index) {
  return static_cast<double>(bytes[index / 2] >> (index % 2 == 0 ? 0 : 4) & 15);
}

Format FormatOf(const std::string& type) {
  if (type == "f16") return FormatAs<__half, float>();
  if (type == "bf16") return FormatAs<__nv_bfloat16, float>();
  if (type == "f8e4m3") return FormatAs<__nv_fp8_e4m3, float>();
  if (type == "f8e5m2") return FormatAs<__nv_fp8_e5m2, float>();
  if (type == "f32") return FormatAs<float>();
  if (type == "f64") return FormatAs<double>();
  if (type == "i8") return FormatAs<int8_t>();
  if (type == "u8" || type == "bool") return FormatAs<uint8_t>();
  if (type == "i16") return FormatAs<int16_t>();
  if (type == "u16") return FormatAs<uint16_t>();
  if (type == "i32") return FormatAs<int32_t>();
  if (type == "u32") return FormatAs<uint32_t>();
  if (type == "i64") return FormatAs<int64_t>();
  if (type == "u64") return FormatAs<uint64_t>();
  return {&WriteHalfByte, &ReadHalfByte};
}

bool IsFloat(const std::string& type) { return type[0] == 'f' || type == "bf16"; }

std::vector<unsigned char> FileOf(const TensorInfo& tensor, int64_t bytes) {
  const std::string path = std::string("data/") + tensor.name + ".bin";
  std::ifstream file(path, std::ios::binary);
  std::vector<unsigned char> content(bytes);
  if (!file.read(reinterpret_cast<char*>(content.data()), bytes)) {
    throw std::runtime_error(path + " does not have the " + std::to_string(bytes) + " bytes of this size");
  }
  return content;
}

// The values of an input. What only problem.py can make is drawn too, integers without a range are 0.
std::vector<unsigned char> Filled(const TensorInfo& tensor, int64_t elements, int64_t bytes, Range range,
                                  std::mt19937_64& random) {
  const std::string type = tensor.type, fill = tensor.fill;
  if (fill == "file") return FileOf(tensor, bytes);
  std::vector<unsigned char> content(bytes);
  if (fill == "bytes") {
    for (unsigned char& byte : content) byte = static_cast<unsigned char>(random());
    return content;
  }
  std::vector<double> values(elements);
  std::normal_distribution<double> normal;
  const bool real = IsFloat(type);
  double low = range.stated ? range.low : 0, high = range.stated ? range.high : real ? 1 : 0;
  if (real && fill == "uniform" && low < 1 && high > 0) low = std::max(low, 0.0), high = std::min(high, 1.0);
  if (type == "bool") low = 0, high = 1;
  std::uniform_real_distribution<double> uniform(low, std::max(low, high));
  const bool counts = fill == "iota" || fill == "permutation", bell = fill == "normal" || fill == "problem";
  const bool constant = fill == "zeros" || fill == "ones" || fill == "constant";
  const double same = fill == "zeros" ? 0 : fill == "ones" ? 1 : range.low;
  for (int64_t i = 0; i < elements; ++i) {
    if (constant) {
      values[i] = same;
    } else if (counts) {
      values[i] = static_cast<double>(i);
    } else if (!real) {
      values[i] = std::floor(low + (high - low + 1) * std::generate_canonical<double, 53>(random));
    } else if (bell) {
      values[i] = range.stated ? std::min(std::max(normal(random), low), high) : normal(random);
    } else {
      values[i] = uniform(random);
    }
  }
  if (fill == "permutation") std::shuffle(values.begin(), values.end(), random);
  if (fill == "sorted" || fill == "csr_offsets") std::sort(values.begin(), values.end());
  if (fill == "csr_offsets" && elements > 1) values.front() = 0, values.back() = range.high;
  const Format format = FormatOf(type);
  for (int64_t i = 0; i < elements; ++i) format.write(content.data(), i, values[i]);
  return content;
}

// Tensors in the GPU's memory.
class Arena {
 public:
  explicit Arena(const Sizes& sizes) {
    for (size_t i = 0; i < TensorInfos().size(); ++i) {
      const int64_t align = std::max(TensorInfos()[i].align, 256);
      bytes_.push_back(BytesOf(TensorInfos()[i], ShapeOf(static_cast<int>(i), sizes)));
      void* memory = nullptr;
      Check(cudaMalloc(&memory, bytes_.back() + align), TensorInfos()[i].name);
      memory_.push_back(memory);
      const uintptr_t address = (reinterpret_cast<uintptr_t>(memory) + align - 1) / align * align;
      tensors_.push_back(reinterpret_cast<void*>(address));
    }
  }
  ~Arena() {
    for (void* memory : memory_) cudaFree(memory);
  }
  Arena(const Arena&) = delete;

  // Inputs as they were drawn, all else 0xff: a NaN or a number that no result is.
  Tensors Fresh(const Host& inputs) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      Check(inputs[i].empty() ? cudaMemset(tensors_[i], 0xff, bytes_[i])
                              : cudaMemcpy(tensors_[i], inputs[i].data(), bytes_[i], cudaMemcpyHostToDevice),
            TensorInfos()[i].name);
    }
    return tensors_;
  }
  std::vector<unsigned char> Read(const Tensors& tensors, size_t tensor) const {
    std::vector<unsigned char> content(bytes_[tensor]);
    Check(cudaMemcpy(content.data(), tensors[tensor], bytes_[tensor], cudaMemcpyDeviceToHost), "read a result");
    return content;
  }

 private:
  std::vector<int64_t> bytes_;
  std::vector<void*> memory_;
  Tensors tensors_;
};

bool IsCompared(const TensorInfo& tensor) {
  return std::string(tensor.role) == "output" || std::string(tensor.role) == "inout";
}

// What is wrong with an output; empty: nothing.
std::string Wrong(const TensorInfo& tensor, const std::vector<unsigned char>& got,
                  const std::vector<unsigned char>& expected) {
  if (tensor.exact || tensor.bits < 8) {
    return got == expected ? "" : "not every bit is that of the reference";
  }
  const Format format = FormatOf(tensor.type);
  double most = 0, difference = 0, norm = 0;
  const int64_t elements = static_cast<int64_t>(got.size()) * 8 / tensor.bits;
  for (int64_t i = 0; i < elements; ++i) {
    const double a = format.read(got.data(), i), b = format.read(expected.data(), i);
    if (std::isfinite(a) != std::isfinite(b)) return "element " + std::to_string(i) + " is " + std::to_string(a) +
                                                     ", the reference has " + std::to_string(b);
    if (!std::isfinite(a)) continue;
    most = std::max(most, std::fabs(a - b));
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  const double relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  std::printf("%s: largest difference %.3g (at most %.3g), relative %.3g (at most %.3g)\n", tensor.name, most,
              tensor.absolute, relative, tensor.relative);
  if (most > tensor.absolute) return "the largest difference is above the tolerance";
  return relative > tensor.relative ? "the relative difference is above the tolerance" : "";
}

bool RunAt(const Sizes& sizes, const std::string& name) {
  std::mt19937_64 random(1);
  Host inputs(TensorInfos().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& tensor = TensorInfos()[i];
    if (std::string(tensor.role) != "input" && std::string(tensor.role) != "inout") continue;
    const std::vector<int64_t> shape = ShapeOf(static_cast<int>(i), sizes);
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    inputs[i] = Filled(tensor, elements, BytesOf(tensor, shape), RangeOf(static_cast<int>(i), sizes), random);
  }
  Arena arena(sizes);
  Tensors tensors = arena.Fresh(inputs);
$SETUP$  Launch(sizes, tensors, nullptr);
  Check(cudaDeviceSynchronize(), "run");
  bool right = true;
$CHECK$
  tensors = arena.Fresh(inputs);
$SETUP$  Launch(sizes, tensors, nullptr);
  Check(cudaDeviceSynchronize(), "run");
  const int calls = 20;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) Launch(sizes, tensors, nullptr);
  Check(cudaDeviceSynchronize(), "run");
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %.3f us a call in a loop of launches; Pawl times a graph of them, without the launch overhead\n",
              name.c_str(), time.count() / calls);
  return right;
}

int Main(int count, char** words) {
  Sizes sizes;
  std::string name = "$GOAL$", cubin;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const size_t equals = word.find('=');
    if (word == "--cubin" && i + 1 < count) {
      cubin = words[++i];
    } else if (equals != std::string::npos) {
      if (sizes.empty()) sizes = Ladder().at(name);
      const auto found = std::find(SizeNames().begin(), SizeNames().end(), word.substr(0, equals));
      if (found == SizeNames().end()) throw std::runtime_error("there is no dimension " + word.substr(0, equals));
      sizes[found - SizeNames().begin()] = std::stoi(word.substr(equals + 1));
    } else if (Ladder().count(word) != 0) {
      name = word;
      sizes = Ladder().at(name);
    } else {
      std::string known;
      for (const auto& [size, values] : Ladder()) known += " " + size;
      throw std::runtime_error("usage: " + std::string(words[0]) + " [SIZE] [DIMENSION=VALUE ...] [--cubin FILE]; sizes:" + known);
    }
  }
  if (sizes.empty()) sizes = Ladder().at(name);
  if (!cubin.empty()) Library::Get().Open(cubin);
$OPEN$  return RunAt(sizes, name) ? 0 : 1;
}

}  // namespace
}  // namespace $NAMESPACE$

int main(int count, char** words) {
  try {
    return $NAMESPACE$::Main(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
#endif
