// Just enough of pybind11 for a compiler to check the bindings that `pawl best --output` writes.
#pragma once

#include <string>

namespace pybind11 {
struct module_ {
  template <typename Function>
  module_& def(const char*, Function&&) {
    return *this;
  }
};
}  // namespace pybind11

#define PYBIND11_MODULE(name, variable)          \
  void pybind11_init_##name(pybind11::module_&); \
  void pybind11_init_##name(pybind11::module_& variable)
