// A bundle's folder: the input is kernel.toml, and behind a zero byte its source. What is read without a mistake must
// also pass for a message, and plans can be made of it.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "fuzz/fuzz_target.h"
#include "kernels/bundle_message.h"
#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/source/source_patch.h"
#include "kernels/space.h"
#include "tests/orchestrator/in_memory.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

constexpr char kReference[] = "extern \"C\" __global__ void reference(const float* in, float* out, int n) {}\n";

void Try(const std::string& toml, const std::string& source) {
  static const auto& folder = *new TemporaryFolder(InMemory("pawl-fuzz-"));
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  };
  write("kernel.toml", toml);
  write("source.cu", source);
  write("reference.cu", kReference);
  const BundleReading reading = ReadBundle(folder.path());
  if (!reading.problems.empty()) return;
  const v1::Bundle& bundle = reading.bundle;
  const std::vector<std::string> problems = BundleProblems(bundle);
  if (!problems.empty()) {
    std::fprintf(stderr, "read without a mistake, refused as a message: %s\n", problems[0].c_str());
    std::abort();
  }
  v1::GpuInfo gpu;
  gpu.set_sm_count(132);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_max_threads_per_block(1024);
  const v1::Variant start = StartVariant(bundle);
  (void)IsAllowed(bundle, start);
  (void)BundleHash(bundle);
  (void)HiddenSizes(bundle, 7);
  Planner planner(bundle);
  for (const v1::Size& size : bundle.sizes()) (void)planner.MakePlan(start, size, gpu);
  (void)ApplyPatch(bundle.source().text(), source, bundle.source().path());
}

}  // namespace
}  // namespace pawl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  pawl::Try(text.substr(0, zero), zero == std::string::npos ? "" : text.substr(zero + 1));
  return 0;
}
