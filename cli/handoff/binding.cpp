// $NAME$ for Python: addresses in, addresses out. $MODULE$.py has the function over PyTorch tensors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "$ID$.h"

#ifndef LAUNCH
#define LAUNCH Launch
#endif

namespace {

// The addresses afterwards: launches may exchange tensors.
std::vector<uintptr_t> Call(const std::vector<int32_t>& sizes, const std::vector<uintptr_t>& addresses, uintptr_t stream) {
  $NAMESPACE$::Tensors tensors;
  for (const uintptr_t address : addresses) tensors.push_back(reinterpret_cast<void*>(address));
  $NAMESPACE$::LAUNCH(sizes, tensors, reinterpret_cast<cudaStream_t>(stream));
  std::vector<uintptr_t> after;
  for (void* tensor : tensors) after.push_back(reinterpret_cast<uintptr_t>(tensor));
  return after;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("launch", &Call);
  module.def("shape_of", &$NAMESPACE$::ShapeOf);
  module.def("open_library", [](const std::string& file) { $NAMESPACE$::Library::Get().Open(file); });
}
