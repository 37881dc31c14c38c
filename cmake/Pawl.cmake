# Functions the folders' CMakeLists use: one static library a folder, tests, embedded data files.

add_compile_options(-Wall -Wextra -Werror=return-type)
# A program takes from a batch of files only what it uses.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--gc-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The compiler frees its own memory from 1 GB on, not from 128 MB on: a tenth of its time.
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
endif()
# toml++ is header-only and must be configured alike in every file: no exceptions, and no abort on a user's odd input.
add_compile_options(-DTOML_EXCEPTIONS=0 "-DTOML_ASSERT(expression)=static_assert(true)")
if(PAWL_SANITIZE)
  add_compile_options(-fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PAWL_SANITIZE})
  # A program has 300 MB then, and linking 200 of them takes as long as compiling: a quarter with lld (Debian: lld).
  find_program(PAWL_LLD ld.lld)
  if(PAWL_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
  if(PAWL_SANITIZE MATCHES thread)
    include_directories(BEFORE ${CMAKE_CURRENT_LIST_DIR}/tsan)
  endif()
endif()
if(PAWL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# A package (scripts/package) carries its libraries in lib/ beside bin/. The old kind of tag also serves the needs of those
# libraries themselves.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
add_link_options(LINKER:--disable-new-dtags)
find_program(CCACHE ccache)
if(CCACHE)
  # Without these two ccache refuses files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
endif()
include(cmake/Precompiled.cmake)

macro(pawl_find_dependencies)
  find_package(Threads REQUIRED)
  find_package(absl REQUIRED)
  find_package(Eigen3 REQUIRED NO_MODULE)
  find_program(PROTOC protoc REQUIRED)
  find_library(PROTOBUF_LIBRARY protobuf REQUIRED)
  # The -dev package of muParser exists for one architecture at a time: a cross build links the library itself.
  find_library(MUPARSER_LIBRARY NAMES muparser libmuparser.so.2 REQUIRED)
  find_library(ZLIB_LIBRARY NAMES z REQUIRED)
  find_program(GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
  set(GRPC_LIBRARIES)
  foreach(library grpc++ grpc gpr)
    find_library(GRPC_LIBRARY_${library} ${library} REQUIRED)
    list(APPEND GRPC_LIBRARIES ${GRPC_LIBRARY_${library}})
  endforeach()
  find_library(GRPC_REFLECTION_LIBRARY grpc++_reflection REQUIRED)
  find_library(SQLITE_LIBRARY sqlite3 REQUIRED)
  # For what serves many: messages are many small pieces of memory. Sanitizers bring their own.
  set(JEMALLOC_LIBRARY)
  if(NOT PAWL_SANITIZE)
    find_library(JEMALLOC_LIBRARY NAMES jemalloc libjemalloc.so.2 REQUIRED)
  endif()
  find_library(HTTPLIB_LIBRARY cpp-httplib REQUIRED)
  find_library(SSL_LIBRARY ssl REQUIRED)
  find_library(CRYPTO_LIBRARY crypto REQUIRED)
  find_library(SPDLOG_LIBRARY spdlog REQUIRED)
  find_library(FMT_LIBRARY fmt REQUIRED)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endmacro()

# pawl_library(NAME sources... [DEPENDS targets...] [EMBED files...] [PRECOMPILED name] [FAST])
# The library is the target pawl_NAME. FAST is for what computes, and for messages; the rest waits for processes, disks
# and GPUs, and -Og (preset release) compiles it a third quicker than -O2. Each EMBED file becomes
# `extern const std::string_view kFileNameToml` in
# "<folder>/embedded.h", namespace pawl::embedded.
function(pawl_library name)
  cmake_parse_arguments(ARG "FAST" "PRECOMPILED" "DEPENDS;EMBED" ${ARGN})
  add_library(pawl_${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(pawl_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(pawl_${name} PUBLIC ${ARG_DEPENDS})
  # In batches of files that lie together: each parses the heavy headers once. A .cc file that names what another of its
  # batch names needs another name for it.
  set_target_properties(pawl_${name} PROPERTIES UNITY_BUILD ${PAWL_UNITY} UNITY_BUILD_BATCH_SIZE 45)
  if(ARG_FAST)
    target_compile_options(pawl_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
    if(PAWL_SANITIZE)
      target_compile_options(pawl_${name} PRIVATE -O1)  # its tests have limits of time
    endif()
  endif()
  if(ARG_PRECOMPILED)
    target_precompile_headers(pawl_${name} REUSE_FROM precompiled_${ARG_PRECOMPILED})
  endif()
  if(ARG_EMBED)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set(out ${PROJECT_BINARY_DIR}/generated/${folder})
    list(TRANSFORM ARG_EMBED PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)
    add_custom_command(
      OUTPUT ${out}/embedded.h ${out}/embedded.cc
      COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFOLDER=${folder} "-DFILES=${inputs}" -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
      DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
      VERBATIM)
    target_sources(pawl_${name} PRIVATE ${out}/embedded.cc ${out}/embedded.h)
  endif()
endfunction()

# pawl_program(NAME main.cc DEPENDS targets...): compiled like the libraries, whose precompiled header serves it then.
function(pawl_program name source)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_library(${name}_main OBJECT ${source})
  target_link_libraries(${name}_main PRIVATE ${ARG_DEPENDS})
  target_compile_definitions(${name}_main PRIVATE PAWL_VERSION="${PROJECT_VERSION}")
  target_precompile_headers(${name}_main REUSE_FROM precompiled_messages)
  add_executable(${name} $<TARGET_OBJECTS:${name}_main>)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  if(PAWL_SANITIZE MATCHES address AND CMAKE_SYSTEM_PROCESSOR MATCHES aarch64)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/asan/no_leak_check.cc)
  endif()
endfunction()

# pawl_test(NAME sources... DEPENDS targets... [LABEL unit|e2e|gpu])
# Tests find the checkout in PAWL_SOURCE_DIR and the programs in PAWL_BIN_DIR (environment).
function(pawl_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "DEPENDS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(PAWL_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 10")  # as tests/instrumented.h has it for the tests' own limits
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM precompiled_tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "PAWL_SOURCE_DIR=${PROJECT_SOURCE_DIR};PAWL_BIN_DIR=${CMAKE_BINARY_DIR}/bin")
endfunction()

# pawl_tests(files... [PREFIX prefix_] [what pawl_test takes]...): a test of its own for each file, named after it.
function(pawl_tests)
  cmake_parse_arguments(ARG "" "PREFIX;LABEL;TIMEOUT" "DEPENDS" ${ARGN})
  foreach(file ${ARG_UNPARSED_ARGUMENTS})
    get_filename_component(name ${file} NAME_WE)
    pawl_test(${ARG_PREFIX}${name} ${file} DEPENDS ${ARG_DEPENDS} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endforeach()
endfunction()
