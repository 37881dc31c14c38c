#include "tests/kernels/contract_alone.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/source/source_patch.h"

namespace pawl {

const char kContractToml[] = R"(name = "copies"
[goal]
size = "main"
[[size]]
name = "main"
N = 1024
[[tensor]]
name  = "in"
type  = "f32"
shape = ["N"]
range = [-4, 4]
[[tensor]]
name  = "out"
type  = "f32"
shape = ["N"]
role  = "output"
[reference]
source = "reference.cu"
[[reference.launch]]
entry     = "scale_rows_reference"
grid      = ["N"]
block     = [1]
arguments = ["in", "out"]
[tolerance]
absolute = 0.01
relative = 0.001
)";

v1::Bundle WithoutImplementation(v1::Bundle bundle) {
  bundle = ContractPartOf(std::move(bundle));
  for (v1::Tensor& tensor : *bundle.mutable_tensors()) {
    if (!IsFilled(tensor.role()) || !tensor.low().empty()) continue;
    tensor.set_low("-4");
    tensor.set_high("4");
  }
  return bundle;
}

std::string AddingFile(const std::string& path, const std::string& text) {
  const std::string lines = absl::StrReplaceAll(absl::StripSuffix(text, "\n"), {{"\n", "\n+"}});
  return absl::StrCat("--- /dev/null\n+++ b/", path, "\n@@ -0,0 +1,", std::count(text.begin(), text.end(), '\n'),
                      " @@\n+", lines, "\n");
}

std::string AddingToml(const v1::Bundle& contract, const std::string& lines) {
  const std::string before = ImplementationToml(contract);
  return UnifiedDiff("kernel.toml", before, before + lines);
}

}  // namespace pawl
