// hidden_factors: what moves the measured ratio of two kernels beside the kernels themselves.
//
//   nvcc -arch=sm_90 -O2 -std=c++17 bench/hidden_factors.cu -lcuda -o hidden_factors
//   ./hidden_factors --seconds 240 --output factors.csv
//
// Each row of the output is one comparison as worker/runner/compare/ makes it: 24 blocks ABBA or BAAB, each with its
// tensors placed again and its graphs captured again, everything refilled before every replay. One factor at a time is
// set to another level than that protocol's (the base level). All levels of a factor see the same random draws
// (offsets, order of the sides, gaps) in the same repetition, so that the difference between two levels has little
// noise. Left out of the protocol: reading outputs back, telemetry, and the checks of unused tensors.
//
// Each repetition runs in new processes. Rows that the output file has already are not measured again; jobs run in the
// order of Jobs(), so that a short time limit still gets the most telling levels. bench/hidden_factors.py makes the
// table for the docs.
//
// This file is also the source of the kernels: the program compiles it again with -DMODULE_... into cubins, one for
// each version of a kernel, because where the driver puts a module's code is one of the factors.

#include <cuda_fp16.h>

#if defined(MODULE_SUPPORT) || !defined(MODULE)
// Mirrored by the host: 16 bytes of a segment are made of one hash chain.
struct Segment {
  unsigned long long address;
  unsigned long long bytes;
  unsigned half;    // 1: __half, 0: float
  unsigned output;  // 1: filled with random bits, 0: with values
};
enum Values { kNormal, kZeros, kLarge };
#endif

#ifdef MODULE

// ---------------------------------------------------------------------------------------------------- the kernels

#if defined(MODULE_SUPPORT)

__device__ __forceinline__ unsigned Mix(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// Sum of four 16-bit uniforms: mean 0, variance 1.
__device__ __forceinline__ float Normal(unsigned x, unsigned y) {
  return (int(x & 0xffff) + int(x >> 16) + int(y & 0xffff) + int(y >> 16) - 131070) * (1.0f / 37837.2f);
}

__device__ __forceinline__ float Draw(unsigned x, int values) {
  if (values == kZeros) return 0;
  const unsigned y = Mix(x);
  if (values == kLarge) return (y & 1 ? 1000.0f : -1000.0f) * (1 - 0.25f * (x >> 8) * (1.0f / 16777216));
  return Normal(x, y);
}

// One row of blocks (blockIdx.y) a segment; segments start on 16 bytes and are multiples of 16.
extern "C" __global__ void fill(const Segment* segments, unsigned seed, int values) {
  const Segment segment = segments[blockIdx.y];
  uint4* out = reinterpret_cast<uint4*>(segment.address);
  const unsigned stream = Mix(seed + blockIdx.y * 0x9e3779b9u);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < segment.bytes / 16; i += gridDim.x * blockDim.x) {
    union {
      uint4 piece;
      unsigned words[4];
      float f32[4];
      __half f16[8];
    };
    unsigned x = Mix(stream ^ i * 8);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x = Mix(x + 0x9e3779b9u);
      if (segment.output) {
        if (e < 4) words[e] = x;
      } else if (segment.half) {
        f16[e] = __float2half_rn(Draw(x, values));
      } else if (e < 4) {
        f32[e] = Draw(x, values);
      }
    }
    out[i] = piece;
  }
}

// Keeps the stream busy while the host queues what follows.
extern "C" __global__ void hold(unsigned nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// Arithmetic on registers alone: its time follows the SM clock.
extern "C" __global__ void anchor(unsigned rounds, float* sink) {
  float x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i;
  for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i % 8] = fmaf(x[i % 8], 0.999f, 0.5f);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += x[i];
  if (sum == 12345.0f) *sink = sum;
}

#elif defined(MODULE_ATTENTION)

// Attention of one head, 128 keys of 64 values: a block a query. Tensors of 16 KB.
// 0: scalar loads. 1: keys by 16 bytes, query in registers. 2: and eight independent sums over the values.
constexpr int kKeys = 128, kD = 64;

__device__ float Reduce(float* shared, float x, bool maximum) {
  const int t = threadIdx.x;
  shared[t] = x;
  __syncthreads();
  for (int half = kD / 2; half > 0; half /= 2) {
    if (t < half) shared[t] = maximum ? fmaxf(shared[t], shared[t + half]) : shared[t] + shared[t + half];
    __syncthreads();
  }
  const float all = shared[0];
  __syncthreads();
  return all;
}

extern "C" __global__ void side(const __half* q, const __half* k, const __half* v, __half* out) {
  __shared__ float weights[kKeys];
  __shared__ float shared[kD];
  const int t = threadIdx.x;
  q += blockIdx.x * kD;
  float largest = -1e30f;
#if VERSION > 0
  float query[kD];
#pragma unroll
  for (int d = 0; d < kD / 2; ++d) {
    const float2 two = __half22float2(reinterpret_cast<const __half2*>(q)[d]);
    query[2 * d] = two.x, query[2 * d + 1] = two.y;
  }
#endif
  for (int key = t; key < kKeys; key += kD) {
    float score = 0;
#if VERSION == 0
    for (int d = 0; d < kD; ++d) score += __half2float(q[d]) * __half2float(k[key * kD + d]);
#else
    const uint4* wide = reinterpret_cast<const uint4*>(k + key * kD);
#pragma unroll
    for (int c = 0; c < kD / 8; ++c) {
      const uint4 pack = wide[c];
      const __half2* two = reinterpret_cast<const __half2*>(&pack);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 pair = __half22float2(two[e]);
        score += query[8 * c + 2 * e] * pair.x + query[8 * c + 2 * e + 1] * pair.y;
      }
    }
#endif
    weights[key] = score * 0.125f;
    largest = fmaxf(largest, weights[key]);
  }
  largest = Reduce(shared, largest, true);
  float sum = 0;
  for (int key = t; key < kKeys; key += kD) {
    weights[key] = __expf(weights[key] - largest);
    sum += weights[key];
  }
  sum = Reduce(shared, sum, false);
#if VERSION < 2
  float weighted = 0;
  for (int key = 0; key < kKeys; ++key) weighted += weights[key] * __half2float(v[key * kD + t]);
#else
  float part[8] = {};
  for (int key = 0; key < kKeys; key += 8) {
#pragma unroll
    for (int e = 0; e < 8; ++e) part[e] += weights[key + e] * __half2float(v[(key + e) * kD + t]);
  }
  const float weighted = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
#endif
  out[blockIdx.x * kD + t] = __float2half_rn(weighted / sum);
}

#elif defined(MODULE_ROW_SUM)

// Sums of 1024 rows of 1024 floats (4 MB): a block a row.
// 0: scalar loads, sums through shared memory. 1: loads of 16 bytes, sums by shuffles.
constexpr int kColumns = 1024, kThreads = 256;

extern "C" __global__ void side(const float* in, float* out) {
  const int t = threadIdx.x;
  in += blockIdx.x * kColumns;
  float sum = 0;
#if VERSION == 0
  __shared__ float shared[kThreads];
  for (int column = t; column < kColumns; column += kThreads) sum += in[column];
  shared[t] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) shared[t] += shared[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = shared[0];
#else
  __shared__ float shared[kThreads / 32];
  const float4 four = reinterpret_cast<const float4*>(in)[t];
  sum = (four.x + four.y) + (four.z + four.w);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (t % 32 == 0) shared[t / 32] = sum;
  __syncthreads();
  if (t >= 32) return;
  sum = t < kThreads / 32 ? shared[t] : 0;
  for (int lane = 4; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (t == 0) out[blockIdx.x] = sum;
#endif
}

#elif defined(MODULE_TRANSPOSE)

// Transpose of 4096 x 4096 floats (64 MB) by tiles of 32 x 32.
// 0: eight values of a tile's column share a bank. 1: none do.
constexpr int kN = 4096, kTile = 32, kRows = 8, kPadding = VERSION == 0 ? 8 : 1;

extern "C" __global__ void side(const float* in, float* out) {
  __shared__ float tile[kTile][kTile + kPadding];
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
#pragma unroll
  for (int row = threadIdx.y; row < kTile; row += kRows) {
    tile[row][threadIdx.x] = in[(y + row) * kN + x + threadIdx.x];
  }
  __syncthreads();
#pragma unroll
  for (int row = threadIdx.y; row < kTile; row += kRows) {
    out[(x + row) * kN + y + threadIdx.x] = tile[threadIdx.x][row];
  }
}

#elif defined(MODULE_STENCIL)

// Mean of the four neighbours and the middle, 512 x 512 floats (1 MB), edges held.
// 0: a value a thread. 1: four values a thread, by 16 bytes.
constexpr int kN = 512;

__device__ __forceinline__ float Mean(float middle, float up, float down, float left, float right) {
  return 0.5f * middle + 0.125f * (up + down + left + right);
}

extern "C" __global__ void side(const float* in, float* out) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
#if VERSION == 0
  const int x = thread % kN, y = thread / kN;
  const float* row = in + y * kN;
  out[thread] = Mean(row[x], in[max(y - 1, 0) * kN + x], in[min(y + 1, kN - 1) * kN + x], row[max(x - 1, 0)],
                     row[min(x + 1, kN - 1)]);
#else
  const int x = thread % (kN / 4), y = thread / (kN / 4);
  const float4* wide = reinterpret_cast<const float4*>(in);
  const float4 up = wide[max(y - 1, 0) * (kN / 4) + x], down = wide[min(y + 1, kN - 1) * (kN / 4) + x];
  const float4 middle = wide[thread];
  const float left = in[y * kN + max(4 * x - 1, 0)], right = in[y * kN + min(4 * x + 4, kN - 1)];
  float4 result;
  result.x = Mean(middle.x, up.x, down.x, left, middle.y);
  result.y = Mean(middle.y, up.y, down.y, middle.x, middle.z);
  result.z = Mean(middle.z, up.z, down.z, middle.y, middle.w);
  result.w = Mean(middle.w, up.w, down.w, middle.z, right);
  reinterpret_cast<float4*>(out)[thread] = result;
#endif
}

#elif defined(MODULE_GEMM)

// 512 x 512 x 512, fp16 with fp32 sums on tensor cores, operands straight from L2. Warps of a block lie side by side.
// 0: 16 x 32 of the result a warp. 1: 32 x 32.
#include <mma.h>
constexpr int kN = 512, kWarps = 4;

extern "C" __global__ void side(const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  constexpr int kHigh = VERSION + 1, kWide = 2;
  const int row = blockIdx.y * 16 * kHigh;
  const int column = (blockIdx.x * kWarps + threadIdx.x / 32) * 16 * kWide;
  fragment<accumulator, 16, 16, 16, float> sums[kHigh][kWide];
#pragma unroll
  for (int i = 0; i < kHigh * kWide; ++i) fill_fragment(sums[i / kWide][i % kWide], 0.0f);
  for (int k = 0; k < kN; k += 16) {
    fragment<matrix_a, 16, 16, 16, __half, row_major> left[kHigh];
    fragment<matrix_b, 16, 16, 16, __half, row_major> right[kWide];
#pragma unroll
    for (int i = 0; i < kHigh; ++i) load_matrix_sync(left[i], a + (row + 16 * i) * kN + k, kN);
#pragma unroll
    for (int j = 0; j < kWide; ++j) load_matrix_sync(right[j], b + k * kN + column + 16 * j, kN);
#pragma unroll
    for (int i = 0; i < kHigh * kWide; ++i) {
      auto& sum = sums[i / kWide][i % kWide];
      mma_sync(sum, left[i / kWide], right[i % kWide], sum);
    }
  }
#pragma unroll
  for (int i = 0; i < kHigh * kWide; ++i) {
    float* corner = c + (row + 16 * (i / kWide)) * kN + column + 16 * (i % kWide);
    store_matrix_sync(corner, sums[i / kWide][i % kWide], kN, mem_row_major);
  }
}

#endif

#if defined(DUMMIES)
// A module that is nothing but code, or code in front of the kernel in its own module: the compiler puts what is
// defined last first. DUMMIES is the number of instructions.
extern "C" __global__ void dummy(float* sink, float x) {
  float y = x;
#pragma unroll
  for (int i = 0; i < DUMMIES; ++i) y = fmaf(y, x, 1.0f + i);
  if (y == 12345.0f) *sink = y;
}
#endif

#else  // the host's program

// ------------------------------------------------------------------------------------------------------- the program

#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

#define CU(call)                                                            \
  do {                                                                      \
    if (CUresult result_ = (call)) {                                        \
      const char* name_ = "?";                                              \
      cuGetErrorName(result_, &name_);                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name_); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

using std::string;
using std::vector;

constexpr uint64_t kMega = 1 << 20;
constexpr int kRepetitions = 3;

// As in comparer.cc and placement.cc.
constexpr uint64_t kRegionBytes = 1024 * kMega, kMaxRegionBytes = 4096 * kMega;
constexpr uint64_t kAlign = 256, kMaxGap = 4096;
constexpr double kGraphUs = 100, kBlockUs = 6000;
constexpr double kMinWarmUp = 0.02, kMaxWarmUp = 0.4, kSteady = 0.003;
constexpr int kPairs = 24, kMaxCalls = 20, kReplays = 3;
constexpr unsigned kAnchorRounds = 1500;
constexpr int kIdlePairs = 6;  // the idle time would take minutes otherwise

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void Fail(const string& message) {
  fprintf(stderr, "hidden_factors: %s\n", message.c_str());
  exit(1);
}

double Mean(const vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

double Deviation(const vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / (values.size() - 1));
}

double Median(vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.empty() ? 0 : values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// ------------------------------------------------------------------------------------------- what is measured, as data

struct Tensor {
  uint64_t bytes;
  bool half;
  bool output;
};

struct Version {
  unsigned grid_x, grid_y, block_x, block_y;
};

struct Kernel {
  string name;
  vector<Tensor> tensors;
  vector<Version> versions;           // called a, b, c
  vector<std::pair<int, int>> pairs;  // parent, candidate; a version with itself shows what the method adds
};

const vector<Kernel>& Kernels() {
  static const vector<Kernel> kernels = {
      {"attention",
       {{16384, true, false}, {16384, true, false}, {16384, true, false}, {16384, true, true}},
       {{128, 1, 64, 1}, {128, 1, 64, 1}, {128, 1, 64, 1}},
       {{0, 1}, {1, 2}, {1, 1}}},
      {"row_sum", {{4 * kMega, false, false}, {4096, false, true}}, {{1024, 1, 256, 1}, {1024, 1, 256, 1}}, {{0, 1}}},
      {"gemm",
       {{kMega / 2, true, false}, {kMega / 2, true, false}, {kMega, false, true}},
       {{4, 32, 128, 1}, {4, 16, 128, 1}},
       {{0, 1}}},
      {"stencil", {{kMega, false, false}, {kMega, false, true}}, {{1024, 1, 256, 1}, {256, 1, 256, 1}}, {{0, 1}}},
      {"transpose",
       {{64 * kMega, false, false}, {64 * kMega, false, true}},
       {{128, 128, 32, 8}, {128, 128, 32, 8}},
       {{0, 1}}},
  };
  return kernels;
}

string VersionName(int version) { return string(1, static_cast<char>('a' + version)); }
string PairName(const std::pair<int, int>& pair) { return VersionName(pair.first) + ">" + VersionName(pair.second); }

const Kernel& FindKernel(const string& name) {
  for (const Kernel& kernel : Kernels()) {
    if (kernel.name == name) return kernel;
  }
  Fail("no kernel is called " + name);
}

struct Factor {
  string name;
  vector<string> levels;  // the first is the base: what Pawl does
};

const vector<Factor>& Factors() {
  static const vector<Factor> factors = {
      {"placement", {"mixed", "packed0", "packed", "gaps", "scattered"}},
      {"code",
       {"once", "candidate-first", "small-dummies", "large-dummies", "dummies-between", "inside", "each-block"}},
      {"before", {"fill", "nothing", "memset-100MB", "other-side", "itself"}},
      {"calls", {"auto", "1", "2", "5", "20", "50"}},
      {"launch", {"graph", "stream", "stream-no-hold"}},
      {"capture", {"random", "parent-first", "candidate-first"}},
      {"values", {"normal", "zeros", "large"}},
      {"process", {"fresh", "same"}},
      {"idle", {"0ms", "1ms", "10ms", "100ms", "500ms"}},
      {"arena", {"after-modules", "before-modules", "after-2GB"}},
      {"persisting", {"untouched", "reset-each-block"}},
  };
  return factors;
}

const Factor& FindFactor(const string& name) {
  for (const Factor& factor : Factors()) {
    if (factor.name == name) return factor;
  }
  Fail("no factor is called " + name);
}

// One comparison: a row of the output.
struct Cell {
  string kernel;
  int pair = 0;
  string factor, level;
  int repetition = 1;

  bool Is(const char* a_factor, const char* a_level) const { return factor == a_factor && level == a_level; }
  // As the output file spells it.
  string Key() const {
    return kernel + "," + PairName(FindKernel(kernel).pairs[pair]) + "," + factor + "," + level + "," +
           std::to_string(repetition);
  }
};

// Cells that one process measures, in order. They belong to one kernel.
using Job = vector<Cell>;

// The most telling first. Levels are in random order, another one in each repetition.
vector<Job> Jobs() {
  vector<Job> jobs;
  std::mt19937_64 random(17);
  const auto add_level = [](Job& job, const Kernel& kernel, const string& factor, const string& level, int repetition) {
    for (size_t pair = 0; pair < kernel.pairs.size(); ++pair) {
      if (level == "500ms" && (pair > 0 || kernel.name == "stencil" || kernel.name == "transpose")) continue;
      // More than the region holds.
      if (factor == "calls" && level == "50" && kernel.name == "transpose") continue;
      job.push_back({kernel.name, static_cast<int>(pair), factor, level, repetition});
    }
  };
  const auto add_together = [&](const vector<string>& factors) {
    for (int repetition = 1; repetition <= kRepetitions; ++repetition) {
      for (const Kernel& kernel : Kernels()) {
        Job job;
        for (const string& factor : factors) {
          for (const string& level : FindFactor(factor).levels) add_level(job, kernel, factor, level, repetition);
        }
        std::shuffle(job.begin(), job.end(), random);
        jobs.push_back(job);
      }
    }
  };
  add_together({"placement", "code"});
  add_together({"before", "calls"});
  add_together({"launch", "capture", "values"});
  for (const Kernel& kernel : Kernels()) {
    Job same;
    for (int repetition = 1; repetition <= kRepetitions; ++repetition) {
      add_level(same, kernel, "process", "same", repetition);
      Job fresh;
      add_level(fresh, kernel, "process", "fresh", repetition);
      for (const Cell& cell : fresh) jobs.push_back({cell});
    }
    jobs.push_back(same);
  }
  add_together({"idle"});
  // Each level in processes of its own: what it leaves behind may last.
  for (const string& factor : {"persisting", "arena"}) {
    for (int repetition = 1; repetition <= kRepetitions; ++repetition) {
      for (const Kernel& kernel : Kernels()) {
        for (const string& level : FindFactor(factor).levels) {
          Job job;
          add_level(job, kernel, factor, level, repetition);
          jobs.push_back(job);
        }
      }
    }
  }
  return jobs;
}

// ------------------------------------------------------------------------------------------------------------- cubins

constexpr int kSmallDummies[] = {60, 250, 900};  // instructions of 16 bytes
constexpr int kLargeDummy = 4000;
constexpr int kInsideDummy = 700;

string VersionCubin(const Kernel& kernel, int version, bool inside) {
  return kernel.name + "_" + VersionName(version) + (inside ? "_inside" : "");
}
string DummyCubin(int rounds) { return "dummy_" + std::to_string(rounds); }

struct Build {
  string name;
  vector<string> defines;
};

vector<Build> Builds() {
  vector<Build> builds = {{"support", {"-DMODULE", "-DMODULE_SUPPORT"}}};
  for (int rounds : {kSmallDummies[0], kSmallDummies[1], kSmallDummies[2], kLargeDummy}) {
    builds.push_back({DummyCubin(rounds), {"-DMODULE", "-DDUMMIES=" + std::to_string(rounds)}});
  }
  for (const Kernel& kernel : Kernels()) {
    string upper = kernel.name;
    for (char& letter : upper) letter = static_cast<char>(toupper(letter));
    for (size_t version = 0; version < kernel.versions.size(); ++version) {
      for (bool inside : {false, true}) {
        Build build = {VersionCubin(kernel, version, inside),
                       {"-DMODULE", "-DMODULE_" + upper, "-DVERSION=" + std::to_string(version)}};
        if (inside) build.defines.push_back("-DDUMMIES=" + std::to_string(kInsideDummy));
        builds.push_back(build);
      }
    }
  }
  return builds;
}

// A child in its own process group. `out` >= 0 becomes its standard output.
pid_t Start(const vector<string>& arguments, int out) {
  vector<char*> argv;
  for (const string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  if (int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ)) {
    Fail("cannot start " + arguments[0] + ": " + strerror(error));
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return pid;
}

// Exit status; kills the child's process group at the deadline.
int Wait(pid_t pid, double deadline) {
  for (;;) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (Now() > deadline) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return 124;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Compiles what is missing in `folder` or older than `source`.
void BuildCubins(const string& nvcc, const string& source, const string& arch, const string& folder) {
  struct stat of_source;
  if (stat(source.c_str(), &of_source) != 0) Fail("cannot read " + source + ": say where it is with --source");
  mkdir(folder.c_str(), 0777);
  vector<std::pair<pid_t, string>> running;
  const auto finish_one = [&] {
    if (Wait(running.front().first, Now() + 120) != 0) Fail("nvcc could not compile " + running.front().second);
    rename((running.front().second + ".part").c_str(), running.front().second.c_str());
    running.erase(running.begin());
  };
  for (const Build& build : Builds()) {
    const string cubin = folder + "/" + build.name + ".cubin";
    struct stat of_cubin;
    if (stat(cubin.c_str(), &of_cubin) == 0 && of_cubin.st_mtime >= of_source.st_mtime) continue;
    vector<string> arguments = {nvcc, "-cubin", "-arch=" + arch, "-O2", "-std=c++17"};
    arguments.insert(arguments.end(), build.defines.begin(), build.defines.end());
    arguments.insert(arguments.end(), {source, "-o", cubin + ".part"});
    if (running.size() >= std::max(1u, std::thread::hardware_concurrency())) finish_one();
    running.push_back({Start(arguments, -1), cubin});
  }
  while (!running.empty()) finish_one();
}

// --------------------------------------------------------------------------------------------------- the measurements

// What one process has of the GPU. Lives until the process ends.
struct Gpu {
  CUstream stream;
  CUevent start, stop;
  CUfunction fill, hold, anchor;
  CUdeviceptr segments = 0, flush = 0, sink = 0, arena = 0, held = 0;
  uint64_t arena_bytes = 0;
  int sm_count = 0;
  string cubins;

  static constexpr int kMaxSegments = 512;
  static constexpr uint64_t kFlushBytes = 100 * kMega;

  explicit Gpu(const string& folder) : cubins(folder) {
    CUdevice device;
    CUcontext context;
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuDeviceGetAttribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    CUmodule support = Load("support");
    CU(cuModuleGetFunction(&fill, support, "fill"));
    CU(cuModuleGetFunction(&hold, support, "hold"));
    CU(cuModuleGetFunction(&anchor, support, "anchor"));
    CU(cuMemAlloc(&segments, kMaxSegments * sizeof(Segment)));
    CU(cuMemAlloc(&flush, kFlushBytes));
    CU(cuMemAlloc(&sink, 256));
  }

  CUmodule Load(const string& name) const {
    std::ifstream file(cubins + "/" + name + ".cubin", std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    if (bytes.str().empty()) Fail("cannot read " + cubins + "/" + name + ".cubin");
    CUmodule module;
    CU(cuModuleLoadData(&module, bytes.str().data()));
    return module;
  }

  void FreeArena() {
    for (CUdeviceptr* memory : {&arena, &held}) {
      if (*memory != 0) CU(cuMemFree(*memory));
      *memory = 0;
    }
  }

  void Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned block, void** arguments) const {
    CU(cuLaunchKernel(function, grid_x, grid_y, 1, block, 1, 1, 0, stream, arguments, nullptr));
  }

  void Hold(unsigned nanoseconds) const {
    void* arguments[] = {&nanoseconds};
    Launch(hold, 1, 1, 1, arguments);
  }

  double ElapsedUs() const {
    float ms = 0;
    CU(cuEventElapsedTime(&ms, start, stop));
    return ms * 1e3;
  }

  double AnchorUs() {
    unsigned rounds = kAnchorRounds;
    void* arguments[] = {&rounds, &sink};
    Hold(20'000);
    CU(cuEventRecord(start, stream));
    Launch(anchor, sm_count, 1, 1024, arguments);
    CU(cuEventRecord(stop, stream));
    CU(cuCtxSynchronize());
    return ElapsedUs();
  }
};

uint64_t RoundUp(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

uint64_t PlacementBytes(const Kernel& kernel, int sets) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : kernel.tensors) bytes += RoundUp(tensor.bytes, kAlign) + kAlign + kMaxGap;
  return bytes * sets;
}

int SetsFor(int calls) { return calls + std::max(1, calls / 4); }

// A region is a quarter larger than needed, and of 1 GB at least.
uint64_t RegionBytes(const Kernel& kernel, int calls) {
  const uint64_t needed = PlacementBytes(kernel, SetsFor(calls));
  return std::max(kRegionBytes, needed + needed / 4);
}

// The largest of any level.
uint64_t ArenaBytes(const Kernel& kernel) { return RegionBytes(kernel, kernel.name == "transpose" ? kMaxCalls : 50); }

struct Row {
  vector<double> log_ratios, parent_us, candidate_us, anchor_us;
  int calls = 0;
};

// One cell: loads both sides, measures the blocks, unloads. `fixed_calls` is kept by the process for each pair, so that
// all levels have the same number of calls in a graph.
class Comparison {
 public:
  Comparison(Gpu& gpu, const Cell& cell, int& fixed_calls)
      : gpu_(gpu), cell_(cell), kernel_(FindKernel(cell.kernel)), fixed_calls_(fixed_calls) {
    sides_[0].version = kernel_.pairs[cell.pair].first;
    sides_[1].version = kernel_.pairs[cell.pair].second;
  }

  Row Run() {
    Seed(-1);
    Prepare();
    CheckOutputs();
    WarmUp();
    Row row;
    row.calls = calls_;
    const int pairs = cell_.factor == "idle" ? kIdlePairs : kPairs;
    for (int pair = 0; pair < pairs; ++pair) MeasurePair(pair, row);
    CU(cuCtxSynchronize());
    DropGraphs();
    Unload();
    return row;
  }

 private:
  enum Style { kPacked, kGaps, kScattered };
  struct Side {
    int version = 0;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    vector<CUgraphExec> graphs;
  };

  // The draws of a block depend on kernel, repetition and block alone: all levels see the same.
  void Seed(int block) {
    std::seed_seq seed = {static_cast<int>(std::hash<string>()(kernel_.name) & 0x7fffffff), cell_.repetition,
                          block + 1};
    random_.seed(seed);
    places_.seed(random_());
    code_.seed(random_());
  }
  uint64_t Below(uint64_t below) { return random_() % below; }

  void Unload() {
    for (Side& side : sides_) {
      if (side.module != nullptr) CU(cuModuleUnload(side.module));
      side.module = nullptr;
    }
    for (CUmodule dummy : dummies_) CU(cuModuleUnload(dummy));
    dummies_.clear();
  }

  // The driver loads a kernel's code when it is first used.
  void RunDummy(CUmodule module) {
    CUfunction function;
    CU(cuModuleGetFunction(&function, module, "dummy"));
    float x = 0.5f;
    void* arguments[] = {&gpu_.sink, &x};
    gpu_.Launch(function, 1, 1, 32, arguments);
    CU(cuCtxSynchronize());
  }

  void LoadDummies(bool large) {
    const int count = 1 + code_() % 8;
    for (int i = 0; i < count; ++i) {
      const int small = kSmallDummies[code_() % 3];
      dummies_.push_back(gpu_.Load(DummyCubin(large ? kLargeDummy : small)));
      RunDummy(dummies_.back());
    }
  }

  void Load() {
    Unload();
    const bool each_block = cell_.Is("code", "each-block");
    const uint64_t draw = code_();
    if (cell_.Is("code", "small-dummies") || (each_block && draw & 1)) LoadDummies(false);
    if (cell_.Is("code", "large-dummies") || (each_block && draw & 2)) LoadDummies(true);
    const int first = cell_.Is("code", "candidate-first") || (each_block && draw & 4) ? 1 : 0;
    for (int i : {first, 1 - first}) {
      Side& side = sides_[i];
      if (i != first && (cell_.Is("code", "dummies-between") || (each_block && draw & 8))) LoadDummies(draw & 16);
      const bool inside = cell_.Is("code", "inside") || (each_block && draw >> (5 + i) & 1);
      side.module = gpu_.Load(VersionCubin(kernel_, side.version, inside));
      if (inside) RunDummy(side.module);
      CU(cuModuleGetFunction(&side.function, side.module, "side"));
    }
  }

  void ReserveArena() {
    if (gpu_.arena != 0) return;
    gpu_.arena_bytes = ArenaBytes(kernel_);
    CU(cuMemAlloc(&gpu_.arena, gpu_.arena_bytes));
  }

  void Prepare() {
    if (cell_.factor == "arena") gpu_.FreeArena();
    if (cell_.Is("arena", "before-modules")) ReserveArena();
    Load();
    if (cell_.Is("arena", "after-2GB")) {
      CU(cuMemAlloc(&gpu_.held, 2048 * kMega));
      CU(cuMemsetD8(gpu_.held, 1, 2048 * kMega));
    }
    ReserveArena();

    calls_ = 1;
    sets_ = 1;
    region_ = RegionBytes(kernel_, 1);
    Place();
    const double us[] = {RoughCallUs(sides_[0]), RoughCallUs(sides_[1])};
    if (fixed_calls_ == 0) {
      const int room = static_cast<int>(kMaxRegionBytes / PlacementBytes(kernel_, 1));
      const int most = std::clamp(room * 4 / 5, 1, kMaxCalls);
      fixed_calls_ = std::clamp(static_cast<int>(std::ceil(kGraphUs / std::min(us[0], us[1]))), 1, most);
    }
    calls_ = cell_.factor == "calls" && cell_.level != "auto" ? std::stoi(cell_.level) : fixed_calls_;
    sets_ = SetsFor(calls_);
    region_ = std::min(RegionBytes(kernel_, calls_), gpu_.arena_bytes);
    replays_ = std::clamp(static_cast<int>(kBlockUs / (std::max(us[0], us[1]) * calls_)), 1, kReplays);
    Place();
  }

  void Call(const Side& side, int set) {
    vector<CUdeviceptr> addresses;
    for (size_t i = 0; i < kernel_.tensors.size(); ++i) addresses.push_back(gpu_.arena + offsets_[set][i]);
    vector<void*> arguments;
    for (CUdeviceptr& address : addresses) arguments.push_back(&address);
    const Version& version = kernel_.versions[side.version];
    CU(cuLaunchKernel(side.function, version.grid_x, version.grid_y, 1, version.block_x, version.block_y, 1, 0,
                      gpu_.stream, arguments.data(), nullptr));
  }

  double RoughCallUs(const Side& side) {
    double best = INFINITY;
    for (int i = 0; i < 3; ++i) {
      Fill(DrawSeed());
      gpu_.Hold(20'000);
      CU(cuEventRecord(gpu_.start, gpu_.stream));
      Call(side, 0);
      CU(cuEventRecord(gpu_.stop, gpu_.stream));
      CU(cuCtxSynchronize());
      best = std::min(best, gpu_.ElapsedUs());
    }
    return std::max(0.5, best);
  }

  unsigned DrawSeed() { return static_cast<unsigned>(random_()); }

  void Fill(unsigned seed) {
    Fill(seed, cell_.Is("values", "zeros") ? kZeros : cell_.Is("values", "large") ? kLarge : kNormal);
  }

  void Fill(unsigned seed, int values) {
    void* arguments[] = {&gpu_.segments, &seed, &values};
    gpu_.Launch(gpu_.fill, fill_blocks_, segment_count_, 256, arguments);
  }

  // As DrawPlacement in placement.cc.
  void DrawPlacement() {
    const bool at_zero = cell_.Is("placement", "packed0");
    Style style = static_cast<Style>(places_() % 3);
    if (cell_.Is("placement", "packed") || at_zero) style = kPacked;
    if (cell_.Is("placement", "gaps")) style = kGaps;
    if (cell_.Is("placement", "scattered")) style = kScattered;

    vector<std::pair<int, int>> items;  // set, tensor
    uint64_t needed = 0;
    for (int set = 0; set < sets_; ++set) {
      for (size_t i = 0; i < kernel_.tensors.size(); ++i) {
        items.push_back({set, static_cast<int>(i)});
        needed += RoundUp(kernel_.tensors[i].bytes, kAlign) + kAlign;
      }
    }
    const uint64_t spare = region_ - std::min(region_, needed);
    vector<uint64_t> before(items.size(), 0);
    if (!at_zero) {
      std::shuffle(items.begin(), items.end(), places_);
      uint64_t left = spare;
      if (style == kScattered) {
        for (uint64_t& cut : before) cut = places_() % (spare + 1);
        std::sort(before.begin(), before.end());
        std::adjacent_difference(before.begin(), before.end(), before.begin());
      } else {
        if (style == kGaps) {
          for (uint64_t& gap : before) left -= gap = places_() % (std::min(left, kMaxGap) + 1);
        }
        before[0] += places_() % (left + 1);
      }
    }
    offsets_.assign(sets_, vector<uint64_t>(kernel_.tensors.size()));
    uint64_t next = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const uint64_t offset = RoundUp(next + before[i], kAlign);
      offsets_[items[i].first][items[i].second] = offset;
      next = offset + kernel_.tensors[items[i].second].bytes;
    }
    if (next > gpu_.arena_bytes) Fail("a placement does not fit the arena");
  }

  // Places for all sets of tensors, and two graphs of each side.
  void Place() {
    DrawPlacement();
    vector<Segment> segments;
    uint64_t largest = 0;
    for (const vector<uint64_t>& set : offsets_) {
      for (size_t i = 0; i < set.size(); ++i) {
        const Tensor& tensor = kernel_.tensors[i];
        segments.push_back({gpu_.arena + set[i], tensor.bytes, tensor.half, tensor.output});
        largest = std::max(largest, tensor.bytes);
      }
    }
    if (segments.size() > Gpu::kMaxSegments) Fail("too many segments");
    CU(cuMemcpyHtoDAsync(gpu_.segments, segments.data(), segments.size() * sizeof(Segment), gpu_.stream));
    CU(cuStreamSynchronize(gpu_.stream));
    segment_count_ = static_cast<unsigned>(segments.size());
    fill_blocks_ = static_cast<unsigned>(std::clamp<uint64_t>(largest / (256 * 16 * 2), 1, 4096));

    DropGraphs();
    orders_.clear();
    const int drawn = static_cast<int>(Below(2));
    const int first = cell_.Is("capture", "parent-first") ? 0 : cell_.Is("capture", "candidate-first") ? 1 : drawn;
    vector<int> order(sets_);
    std::iota(order.begin(), order.end(), 0);
    for (int use = 0; use < 2; ++use) {
      if (!cell_.Is("placement", "packed0")) std::shuffle(order.begin(), order.end(), places_);
      orders_.emplace_back(order.begin(), order.begin() + calls_);
      for (int i : {first, 1 - first}) Capture(sides_[i], orders_.back());
    }
  }

  void Capture(Side& side, const vector<int>& order) {
    CUgraph graph;
    CUgraphExec executable;
    CU(cuStreamBeginCapture(gpu_.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int set : order) Call(side, set);
    CU(cuStreamEndCapture(gpu_.stream, &graph));
    CU(cuGraphInstantiate(&executable, graph, 0));
    CU(cuGraphDestroy(graph));
    side.graphs.push_back(executable);
  }

  void DropGraphs() {
    for (Side& side : sides_) {
      for (CUgraphExec graph : side.graphs) CU(cuGraphExecDestroy(graph));
      side.graphs.clear();
    }
  }

  vector<float> Output(const Side& side) {
    const size_t last = kernel_.tensors.size() - 1;
    const Tensor& tensor = kernel_.tensors[last];
    const CUdeviceptr address = gpu_.arena + offsets_[0][last];
    CU(cuMemsetD8Async(address, 0xff, tensor.bytes, gpu_.stream));  // NaN, until it is written
    Call(side, 0);
    CU(cuCtxSynchronize());
    vector<char> bytes(std::min(tensor.bytes, 4 * kMega));
    CU(cuMemcpyDtoH(bytes.data(), address, bytes.size()));
    vector<float> values(bytes.size() / (tensor.half ? sizeof(__half) : sizeof(float)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = tensor.half ? __half2float(reinterpret_cast<const __half*>(bytes.data())[i])
                              : reinterpret_cast<const float*>(bytes.data())[i];
    }
    return values;
  }

  // Two versions that compute different things must not be compared. Once a process; the first 4 MB of the output.
  void CheckOutputs() {
    static std::set<int> checked;
    if (!checked.insert(cell_.pair).second) return;
    Fill(DrawSeed(), kNormal);
    const vector<float> parent = Output(sides_[0]), candidate = Output(sides_[1]);
    for (size_t i = 0; i < parent.size(); ++i) {
      if (!(std::abs(parent[i] - candidate[i]) <= 0.002f * (1 + std::abs(parent[i])))) {
        Fail(cell_.Key() + ": the versions disagree: element " + std::to_string(i) + " is " +
             std::to_string(parent[i]) + " and " + std::to_string(candidate[i]));
      }
    }
  }

  void WarmUp() {
    const double start = Now();
    vector<double> anchors;
    const auto steady = [&] {
      if (anchors.size() < 6) return false;
      const auto [low, high] = std::minmax_element(anchors.end() - 6, anchors.end());
      return *high <= *low * (1 + kSteady);
    };
    while (Now() - start < kMinWarmUp || (!steady() && Now() - start < kMaxWarmUp)) {
      for (Side& side : sides_) {
        Fill(DrawSeed());
        for (CUgraphExec graph : side.graphs) CU(cuGraphLaunch(graph, gpu_.stream));
      }
      anchors.push_back(gpu_.AnchorUs());
    }
  }

  // us of a call.
  double Measure(Side& side) {
    const size_t use = Below(2);
    const unsigned seed = DrawSeed();
    const bool stream = cell_.factor == "launch" && cell_.level != "graph";
    // The host needs longer to queue many launches than one graph.
    unsigned hold = 25'000 + static_cast<unsigned>(Below(30'000));
    if (cell_.Is("launch", "stream")) hold += 8'000 * calls_;
    if (!cell_.Is("launch", "stream-no-hold")) gpu_.Hold(hold);
    if (!cell_.Is("before", "nothing")) Fill(seed);
    if (cell_.Is("before", "memset-100MB")) CU(cuMemsetD8Async(gpu_.flush, 1, Gpu::kFlushBytes, gpu_.stream));
    if (cell_.Is("before", "itself")) CU(cuGraphLaunch(side.graphs[use], gpu_.stream));
    if (cell_.Is("before", "other-side")) {
      CU(cuGraphLaunch(sides_[&side == &sides_[0] ? 1 : 0].graphs[use], gpu_.stream));
    }
    CU(cuEventRecord(gpu_.start, gpu_.stream));
    if (stream) {
      for (int set : orders_[use]) Call(side, set);
    } else {
      CU(cuGraphLaunch(side.graphs[use], gpu_.stream));
    }
    CU(cuEventRecord(gpu_.stop, gpu_.stream));
    CU(cuCtxSynchronize());
    return gpu_.ElapsedUs() / calls_;
  }

  void MeasurePair(int pair, Row& row) {
    Seed(pair);
    if (cell_.Is("code", "each-block")) {
      DropGraphs();
      Load();
    }
    Place();
    const unsigned seed = DrawSeed();
    if (cell_.Is("before", "nothing")) Fill(seed);
    if (cell_.Is("persisting", "reset-each-block")) CU(cuCtxResetPersistingL2Cache());
    CU(cuCtxSynchronize());
    if (cell_.factor == "idle") std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(cell_.level)));
    const int outer = static_cast<int>(Below(2));
    vector<double> us[2];
    for (int half = 0; half < 2; ++half) {
      row.anchor_us.push_back(gpu_.AnchorUs());
      for (int side : {half == 0 ? outer : 1 - outer, half == 0 ? 1 - outer : outer}) {
        for (int replay = 0; replay < replays_; ++replay) us[side].push_back(Measure(sides_[side]));
      }
    }
    row.parent_us.push_back(Median(us[0]));
    row.candidate_us.push_back(Median(us[1]));
    row.log_ratios.push_back(std::log(row.parent_us.back() / row.candidate_us.back()));
  }

  Gpu& gpu_;
  const Cell& cell_;
  const Kernel& kernel_;
  int& fixed_calls_;
  std::mt19937_64 random_, places_, code_;
  Side sides_[2];  // parent, candidate
  vector<CUmodule> dummies_;
  int calls_ = 1, sets_ = 1, replays_ = 1;
  uint64_t region_ = 0;
  vector<vector<uint64_t>> offsets_;  // of each set's tensors
  vector<vector<int>> orders_;        // of the sets in a graph
  unsigned segment_count_ = 0, fill_blocks_ = 1;
};

constexpr char kHeader[] =
    "kernel,pair,factor,level,repetition,mean_log_ratio,sd_pairs,parent_us,candidate_us,pairs,calls,anchor_us";

// The process of one job: a row on standard output for each cell, until `deadline`.
int MeasureJob(const string& cubins, double deadline, const Job& job) {
  Gpu gpu(cubins);
  std::map<int, int> fixed_calls;
  std::set<int> measured;
  for (const Cell& cell : job) {
    if (Now() > deadline) break;
    // Not the first comparison of these two in this process.
    if (cell.Is("process", "same") && measured.insert(cell.pair).second) {
      Comparison(gpu, cell, fixed_calls[cell.pair]).Run();
    }
    const Row row = Comparison(gpu, cell, fixed_calls[cell.pair]).Run();
    printf("%s,%.6f,%.6f,%.4f,%.4f,%zu,%d,%.3f\n", cell.Key().c_str(), Mean(row.log_ratios), Deviation(row.log_ratios),
           Median(row.parent_us), Median(row.candidate_us), row.log_ratios.size(), row.calls, Median(row.anchor_us));
    fflush(stdout);
  }
  return 0;
}

// ------------------------------------------------------------------------------------------------ the output's summary

vector<string> Split(const string& line, char separator) {
  vector<string> fields;
  std::stringstream stream(line);
  for (string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

// Complete rows of the output file, in fields.
vector<vector<string>> ReadRows(const string& output) {
  vector<vector<string>> rows;
  std::ifstream file(output);
  const size_t columns = Split(kHeader, ',').size();
  for (string line; std::getline(file, line);) {
    vector<string> fields = Split(line, ',');
    if (fields.size() == columns && fields[0] != "kernel") rows.push_back(fields);
  }
  return rows;
}

// For each factor and pair: the range of the levels' means, less the range of the base level's repetitions.
void PrintSummary(const string& output) {
  std::map<string, std::map<string, std::map<string, vector<double>>>> ratios;  // factor, pair, level
  for (const vector<string>& row : ReadRows(output)) {
    ratios[row[2]][row[0] + " " + row[1]][row[3]].push_back(std::stod(row[5]));
  }
  printf("\nIn per cent of a ratio: range of the levels' means, spread of the base level's repetitions, difference.\n");
  printf("%-10s %-15s %8s %8s %8s   %s\n", "factor", "pair", "range", "spread", "excess", "lowest and highest level");
  for (const Factor& factor : Factors()) {
    for (const auto& [pair, levels] : ratios[factor.name]) {
      const auto base = levels.find(factor.levels[0]);
      if (base == levels.end() || levels.size() < 2) continue;
      vector<std::pair<double, string>> means;
      for (const auto& [level, values] : levels) means.push_back({Mean(values), level});
      const auto [low, high] = std::minmax_element(means.begin(), means.end());
      const auto [least, most] = std::minmax_element(base->second.begin(), base->second.end());
      const double range = high->first - low->first, spread = *most - *least;
      printf("%-10s %-15s %8.2f %8.2f %8.2f   %s %.2f, %s %.2f\n", factor.name.c_str(), pair.c_str(), 100 * range,
             100 * spread, 100 * (range - spread), low->second.c_str(), 100 * low->first, high->second.c_str(),
             100 * high->first);
    }
  }
}

// ------------------------------------------------------------------------------------------------- the main process

struct Flags {
  double seconds = 240;
  string output = "hidden_factors.csv", cubins, source = __FILE__, nvcc = "nvcc", arch;
  vector<string> only;  // factors
  bool build_only = false, summary_only = false;
};

// Runs one job in a new process; appends its rows to the file.
bool RunJob(const Flags& flags, const Job& job, double deadline, FILE* file) {
  vector<string> arguments = {"/proc/self/exe", "--job", flags.cubins, std::to_string(deadline)};
  for (const Cell& cell : job) {
    arguments.push_back(cell.kernel + ":" + std::to_string(cell.pair) + ":" + cell.factor + ":" + cell.level + ":" +
                        std::to_string(cell.repetition));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("pipe failed");
  const pid_t pid = Start(arguments, ends[1]);
  close(ends[1]);
  const double kill_at = deadline + 10;  // the last cell may have begun just before the deadline
  string text;
  for (;;) {
    pollfd poll_in = {ends[0], POLLIN, 0};
    const int ready = poll(&poll_in, 1, static_cast<int>(std::max(0.0, kill_at - Now()) * 1e3));
    char buffer[4096];
    const ssize_t count = ready > 0 ? read(ends[0], buffer, sizeof(buffer)) : 0;
    if (count <= 0) break;
    text.append(buffer, count);
    if (const size_t end = text.rfind('\n'); end != string::npos) {
      fwrite(text.data(), 1, end + 1, file);
      fflush(file);
      text.erase(0, end + 1);
    }
  }
  close(ends[0]);
  return Wait(pid, kill_at) == 0;
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const string flag = argv[i];
    const auto value = [&]() -> string {
      if (i + 1 >= argc) Fail(flag + " needs a value");
      return argv[++i];
    };
    if (flag == "--seconds") {
      flags.seconds = std::stod(value());
    } else if (flag == "--output") {
      flags.output = value();
    } else if (flag == "--factors") {
      flags.only = Split(value(), ',');
      for (const string& factor : flags.only) FindFactor(factor);
    } else if (flag == "--cubins") {
      flags.cubins = value();
    } else if (flag == "--source") {
      flags.source = value();
    } else if (flag == "--nvcc") {
      flags.nvcc = value();
    } else if (flag == "--arch") {
      flags.arch = value();
    } else if (flag == "--build") {
      flags.build_only = true;
    } else if (flag == "--summary") {
      flags.summary_only = true;
    } else {
      fprintf(stderr,
              "usage: hidden_factors [--seconds N] [--output FILE] [--factors NAME,...]\n"
              "                      [--cubins FOLDER] [--source FILE] [--nvcc PATH] [--arch sm_90]\n"
              "                      [--build: compile the cubins only] [--summary: read the output only]\n");
      exit(2);
    }
  }
  if (flags.cubins.empty()) flags.cubins = flags.output + ".cubins";
  return flags;
}

// Holds a context as long as the program runs: without one, each process would initialise the GPU again.
string OpenGpu() {
  CUdevice device;
  CUcontext context;
  int major = 0, minor = 0;
  char name[128];
  CU(cuInit(0));
  CU(cuDeviceGet(&device, 0));
  CU(cuDevicePrimaryCtxRetain(&context, device));
  CU(cuDeviceGetName(name, sizeof(name), device));
  CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  fprintf(stderr, "%s\n", name);
  return "sm_" + std::to_string(10 * major + minor);
}

int Main(int argc, char** argv) {
  if (argc > 3 && string(argv[1]) == "--job") {
    Job job;
    for (int i = 4; i < argc; ++i) {
      const vector<string> fields = Split(argv[i], ':');
      job.push_back({fields.at(0), std::stoi(fields.at(1)), fields.at(2), fields.at(3), std::stoi(fields.at(4))});
    }
    return MeasureJob(argv[2], std::stod(argv[3]), job);
  }
  Flags flags = ParseFlags(argc, argv);
  if (flags.summary_only) {
    PrintSummary(flags.output);
    return 0;
  }
  const double begin = Now(), deadline = begin + flags.seconds;
  if (!flags.build_only) {
    const string arch = OpenGpu();
    if (flags.arch.empty()) flags.arch = arch;
  }
  BuildCubins(flags.nvcc, flags.source, flags.arch.empty() ? "sm_90" : flags.arch, flags.cubins);
  fprintf(stderr, "cubins ready after %.1f s\n", Now() - begin);
  if (flags.build_only) return 0;

  std::set<string> done;
  for (const vector<string>& row : ReadRows(flags.output)) {
    done.insert(row[0] + "," + row[1] + "," + row[2] + "," + row[3] + "," + row[4]);
  }
  FILE* file = fopen(flags.output.c_str(), "a");
  if (file == nullptr) Fail("cannot write " + flags.output);
  if (struct stat of_output; stat(flags.output.c_str(), &of_output) == 0 && of_output.st_size == 0) {
    fprintf(file, "%s\n", kHeader);
  }
  int failed = 0;
  for (Job job : Jobs()) {
    const auto skipped = [&](const Cell& cell) {
      const bool wanted =
          flags.only.empty() || std::find(flags.only.begin(), flags.only.end(), cell.factor) != flags.only.end();
      return !wanted || done.count(cell.Key()) > 0;
    };
    job.erase(std::remove_if(job.begin(), job.end(), skipped), job.end());
    if (job.empty()) continue;
    if (Now() > deadline) {
      fprintf(stderr, "time is up; run again to go on from %s\n", job.front().Key().c_str());
      break;
    }
    const double start = Now();
    const bool fine = RunJob(flags, job, deadline, file);
    failed += !fine;
    fprintf(stderr, "%6.1f s  %s and %zu more: %.2f s%s\n", Now() - begin, job.front().Key().c_str(), job.size() - 1,
            Now() - start, fine ? "" : " FAILED");
    if (failed >= 3) Fail("three jobs failed");
  }
  fclose(file);
  PrintSummary(flags.output);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }

#endif
