# Precompiled headers: a few heavy ones (protobuf, gRPC, GoogleTest) are in nearly every file, and parsing them was most of
# a build. pawl_precompiled(NAME [PROGRAMS] DEPENDS targets... HEADERS headers...) makes one; pawl_library and pawl_test take its name
# as PRECOMPILED. Files still include what they use: the objects of tests/repository and clang's check of the locks are
# compiled without.
set(PAWL_STANDARD_HEADERS
  <algorithm> <cmath> <cstdint> <cstdio> <filesystem> <functional> <map> <memory> <optional> <set> <string> <string_view>
  <utility> <vector> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/time/time.h> <absl/time/clock.h>)

function(pawl_precompiled name)
  cmake_parse_arguments(ARG "PROGRAMS" "" "DEPENDS;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Owns a precompiled header.\nint main() {}\n")
  # Of the kind that uses it: libraries are compiled with -fPIC, programs with -fPIE, and a header serves one of them.
  if(ARG_PROGRAMS)
    add_executable(precompiled_${name} EXCLUDE_FROM_ALL ${source})
  else()
    add_library(precompiled_${name} STATIC ${source})
  endif()
  target_link_libraries(precompiled_${name} PRIVATE ${ARG_DEPENDS} absl::status absl::statusor absl::strings absl::str_format
    absl::time)
  # ccache would preprocess it with the one that is there, and so take an outdated one for the new one.
  set_target_properties(precompiled_${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  target_precompile_headers(precompiled_${name} PRIVATE ${PAWL_STANDARD_HEADERS} ${ARG_HEADERS})
endfunction()

# Neither gRPC nor CLI11 is among them: their inline code costs every file more than parsing them costs those that use them.
macro(pawl_precompile_all)
  set(messages <pawl/v1/campaign.pb.h> <pawl/v1/event.pb.h> <pawl/v1/trial.pb.h> <pawl/v1/runner.pb.h> <pawl/v1/builder.pb.h>
    <google/protobuf/util/json_util.h>)
  pawl_precompiled(messages DEPENDS pawl_proto HEADERS ${messages})
  pawl_precompiled(tests PROGRAMS DEPENDS pawl_proto GTest::gtest GTest::gmock HEADERS ${messages} <gtest/gtest.h> <gmock/gmock.h>)
endmacro()
