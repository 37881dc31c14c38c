#include "tests/promises/fake_gpu_worker.h"

#include <cstdlib>
#include <filesystem>

#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {

std::map<std::string, std::string> FakeGpuEnvironment() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  const char* bin = std::getenv("PAWL_BIN_DIR");
  const std::string folder = std::string(source == nullptr ? "." : source) + "/tests/promises/fake_gpu";
  return {
      {"PAWL_NVCC", folder + "/nvcc"},
      {"PAWL_NVRTC", "/no/libnvrtc.so"},
      {"PAWL_NCU", folder + "/ncu"},
      {"PAWL_COMPUTE_SANITIZER", folder + "/compute-sanitizer"},
      // Where its pawl-runner is looked for first; pawl-builder is found beside the worker.
      {"PAWL_BIN_DIR", (std::filesystem::path(bin == nullptr ? "." : bin).parent_path() / "tests/fake_gpu").string()}};
}

std::unique_ptr<Daemon> FakeGpuWorker(const std::string& orchestrator, const std::string& name,
                                      const std::map<std::string, std::string>& env) {
  std::map<std::string, std::string> all = FakeGpuEnvironment();
  all.insert(env.begin(), env.end());
  const std::vector<std::string> arguments = {
      "--orchestrator", orchestrator, "--device", "cuda:0", "--name", name, "--ahead", "0", "--allow-unsandboxed"};
  return std::make_unique<Daemon>("pawl-worker", arguments, all);
}

v1::Bundle FakeGpuBundle(const std::string& lines) {
  v1::Bundle bundle = TinyBundle();
  bundle.set_compiler(v1::COMPILER_NVCC);
  bundle.mutable_source()->set_text(lines + bundle.source().text());
  return bundle;
}

}  // namespace pawl
