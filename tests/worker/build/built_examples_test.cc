// Every bundle in examples/ compiles: the start variant, the setup and the reference, where there is a compiler.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "worker/build/builder.h"
#include "worker/build/built_variant.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

TEST(BuiltExamplesTest, Compile) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(2);
  if (!builder.ok()) GTEST_SKIP() << builder.status().message();
  v1::GpuInfo gpu = TypicalGpu();
  gpu.set_compute_major(9);
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  ReferenceCache references;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(source == nullptr ? "." : source) / "examples")) {
    if (!fs::exists(entry.path() / "kernel.toml")) continue;
    SCOPED_TRACE(entry.path().string());
    const v1::Bundle bundle = ReadBundle(entry.path()).bundle;
    const absl::StatusOr<BuiltVariant> built =
        BuildVariant(**builder, bundle, StartVariant(bundle), {bundle.sizes(0)}, gpu);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_FALSE(built->failure.has_value()) << built->failure->message();
    if (bundle.has_reference()) {
      const absl::StatusOr<BuiltSize> reference = BuildReference(**builder, bundle, bundle.sizes(0), gpu, &references);
      EXPECT_TRUE(reference.ok()) << reference.status();
    }
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace pawl
