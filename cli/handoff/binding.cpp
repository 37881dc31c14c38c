// $NAME$ for Python: addresses in, addresses out. $MODULE$.py has the function over PyTorch tensors.
#include "$ID$.h"

#ifndef LAUNCH
#define LAUNCH Launch
#endif

#ifndef PLAIN_C
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

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

#else  // for ctypes, where a machine lacks what extensions of Python are built with

namespace {

// Nothing; otherwise `error` has what went wrong.
template <typename Work>
int Guarded(char* error, size_t room, Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception& caught) {
    std::snprintf(error, room, "%s", caught.what());
    return 1;
  }
}

}  // namespace

extern "C" int pawl_launch(const int32_t* sizes, size_t size_count, uintptr_t* addresses, size_t count, uintptr_t stream,
                           char* error, size_t room) {
  return Guarded(error, room, [&] {
    $NAMESPACE$::Tensors tensors;
    for (size_t i = 0; i < count; ++i) tensors.push_back(reinterpret_cast<void*>(addresses[i]));
    $NAMESPACE$::LAUNCH($NAMESPACE$::Sizes(sizes, sizes + size_count), tensors, reinterpret_cast<cudaStream_t>(stream));
    for (size_t i = 0; i < count; ++i) addresses[i] = reinterpret_cast<uintptr_t>(tensors[i]);
  });
}

// `shape` has room for 8 extents; those that are left are 0.
extern "C" int pawl_shape_of(int tensor, const int32_t* sizes, size_t size_count, int64_t* shape, char* error, size_t room) {
  return Guarded(error, room, [&] {
    const std::vector<int64_t> extents = $NAMESPACE$::ShapeOf(tensor, $NAMESPACE$::Sizes(sizes, sizes + size_count));
    std::copy(extents.begin(), extents.end(), shape);
  });
}

extern "C" int pawl_open_library(const char* file, char* error, size_t room) {
  return Guarded(error, room, [&] { $NAMESPACE$::Library::Get().Open(file); });
}
#endif
