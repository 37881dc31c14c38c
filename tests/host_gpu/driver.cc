// libcuda.so.1 for a machine without a GPU: runs what nvrtc.cc compiled for the host. As far as Pawl's runner asks for
// it (worker/runner/driver/cuda_driver.h), and stricter than a GPU: work that was queued begins only when it is waited
// for.
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/host_gpu/blocks.h"
#include "tests/host_gpu/image.h"
#include "tests/host_gpu/memory.h"
#include "tests/host_gpu/streams.h"

using Result = int;
using DevicePtr = uint64_t;

namespace host_gpu {
namespace {

constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoImage = 209, kInvalidHandle = 400,
                 kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kOutOfResources = 701, kTimeout = 702,
                 kMisaligned = 716, kCaptureUnsupported = 900;

// Slower than the host, as long as it is not busy: times are the same again and again.
constexpr double kLaunchUs = 2, kStepUs = 0.02, kWaitUs = 0.4, kAnchorUs = 100, kBytesPerUs = 4000;

struct Module {
  int fd = -1;  // the linker takes libraries of one name for the same
  void* library = nullptr;
  const Image* image = nullptr;
  bool unloaded = false;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() {
    if (library != nullptr) dlclose(library);
    if (fd >= 0) close(fd);
  }
};

struct Function {
  const Entry* entry;
  std::shared_ptr<Module> module;
};

struct LoadedModule {
  std::shared_ptr<Module> module;
  std::list<Function> functions;
};

struct Event {
  bool recorded = false;
  double at = 0;
};

using Graph = std::shared_ptr<std::vector<Work>>;

// All calls of the driver, one after another.
std::recursive_mutex mutex;
Memory memory;
Stream default_stream;
std::list<Stream> streams;
Result lost = kSuccess;  // what ended the context

#define HOST_GPU_CALL()                                    \
  const std::lock_guard<std::recursive_mutex> lock(mutex); \
  if (lost != kSuccess) return lost

Stream& StreamOf(void* stream) { return stream == nullptr ? default_stream : *static_cast<Stream*>(stream); }

void* Pointer(DevicePtr address) { return reinterpret_cast<void*>(address); }

double CopyUs(size_t bytes) { return 1 + static_cast<double>(bytes) / kBytesPerUs; }

// Of the file that a cubin is; the library's trailer lies behind it.
size_t ElfBytes(const char* cubin) {
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(cubin);
  size_t end = std::max(header->e_shoff + size_t{header->e_shnum} * header->e_shentsize,
                        header->e_phoff + size_t{header->e_phnum} * header->e_phentsize);
  for (int i = 0; i < header->e_shnum; ++i) {
    Elf64_Shdr section;
    memcpy(&section, cubin + header->e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS) end = std::max<size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

std::shared_ptr<Module> Load(const char* cubin) {
  const Trailer* trailer = nullptr;
  const size_t end = ElfBytes(cubin);
  // NVRTC may leave some bytes behind its file.
  for (size_t at = (end + 15) / 16 * 16; at < end + 64; at += 16) {
    if (memcmp(cubin + at, kMagic, sizeof(kMagic)) == 0) {
      trailer = reinterpret_cast<const Trailer*>(cubin + at);
      break;
    }
  }
  if (trailer == nullptr) return nullptr;
  auto module = std::make_shared<Module>();
  module->fd = memfd_create("image", MFD_CLOEXEC);
  const char* const bytes = reinterpret_cast<const char*>(trailer + 1);
  for (size_t done = 0; done < trailer->bytes;) {
    const ssize_t count = write(module->fd, bytes + done, trailer->bytes - done);
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module->fd);
  module->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module->library == nullptr) {
    fprintf(stderr, "host GPU: %s\n", dlerror());
    return nullptr;
  }
  const auto image = reinterpret_cast<const Image* (*)()>(dlsym(module->library, "host_gpu_image"));
  if (image == nullptr) return nullptr;
  module->image = image();
  for (size_t i = 0; i < module->image->variable_count; ++i) {
    const Variable& variable = module->image->variables[i];
    memory.AddVariable(reinterpret_cast<uint64_t>(variable.address), variable.bytes);
  }
  return module;
}

// A launch with its own copy of the arguments.
struct Launch {
  Function function;
  Extent grid, block;
  size_t shared_bytes;
  std::vector<std::vector<char>> arguments;

  double Run() {
    const std::string name = function.entry->name;
    // Kernels of Pawl's own whose time is all that matters.
    if (name == "pawl_anchor") return kAnchorUs;
    if (name == "pawl_hold") return 1e-3 * *reinterpret_cast<const uint32_t*>(arguments[0].data());
    if (name == "pawl_crowd" || name == "pawl_slow_some") {
      return 1e-3 * *reinterpret_cast<const uint32_t*>(arguments[1].data());
    }
    std::vector<void*> pointers;
    for (std::vector<char>& argument : arguments) pointers.push_back(argument.data());
    Steps steps;
    if (lost != kSuccess) return 0;
    if (function.module->unloaded) return lost = kIllegalAddress, 0;
    const double start = HostMicroseconds();
    switch (RunGrid(*function.entry, pointers.data(), grid, block, shared_bytes, function.module->library, &steps)) {
      case Fault::kNone:
        break;
      case Fault::kIllegalAddress:
        lost = kIllegalAddress;
        break;
      case Fault::kMisaligned:
        lost = kMisaligned;
        break;
      case Fault::kDeadlock:
        lost = kTimeout;
    }
    if (name.rfind("pawl_", 0) == 0) return kLaunchUs;  // they cost nothing
    const double model =
        kLaunchUs + kStepUs * static_cast<double>(steps.blocks) + kWaitUs * static_cast<double>(steps.waits);
    return std::max(model, HostMicroseconds() - start);
  }
};

Result QueueLaunch(Function* function, const Extent& grid, const Extent& block, size_t shared_bytes, void* stream,
                   void** arguments) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || uint64_t{grid.x} * grid.y * grid.z == 0 || grid.y > 65535 || grid.z > 65535) return kInvalidValue;
  if (threads > kMaxThreads || shared_bytes > kSharedPerBlock) return kInvalidValue;
  auto launch = std::make_shared<Launch>(Launch{*function, grid, block, shared_bytes, {}});
  for (size_t i = 0; i < function->entry->count; ++i) {
    const char* const value = static_cast<const char*>(arguments[i]);
    launch->arguments.emplace_back(value, value + function->entry->sizes[i]);
  }
  StreamOf(stream).Queue([launch] { return launch->Run(); });
  return kSuccess;
}

Result WaitForAll() {
  std::vector<Stream*> all = {&default_stream};
  for (Stream& stream : streams) all.push_back(&stream);
  for (const Stream* stream : all) {
    if (stream->capturing()) return kCaptureUnsupported;
  }
  std::shuffle(all.begin(), all.end(), Chance());
  for (Stream* stream : all) stream->Finish();
  for (Stream* stream : all) stream->Wait();
  return lost;
}

Result Wait(Stream& stream) {
  if (stream.capturing()) return kCaptureUnsupported;
  stream.Wait();
  return lost;
}

}  // namespace
}  // namespace host_gpu

using namespace host_gpu;

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
Result cuGetErrorName(Result result, const char** name) {
  switch (result) {
    case kInvalidValue:
      return *name = "CUDA_ERROR_INVALID_VALUE", kSuccess;
    case kOutOfMemory:
      return *name = "CUDA_ERROR_OUT_OF_MEMORY", kSuccess;
    case kIllegalAddress:
      return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", kSuccess;
    case kMisaligned:
      return *name = "CUDA_ERROR_MISALIGNED_ADDRESS", kSuccess;
    default:
      return *name = "CUDA_ERROR_OF_HOST_GPU", kSuccess;
  }
}
Result cuGetErrorString(Result result, const char** text) {
  return result == lost ? (*text = FaultText(), kSuccess) : cuGetErrorName(result, text);
}
Result cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kSuccess; }
Result cuDeviceGetName(char* name, int bytes, int) {
  snprintf(name, static_cast<size_t>(bytes), "host GPU");
  return kSuccess;
}
Result cuDeviceGetUuid(unsigned char* uuid, int) {
  memset(uuid, 0x42, 16);
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = kTotalBytes, kSuccess; }
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 1:
      return *value = kMaxThreads, kSuccess;
    case 16:
      return *value = kMultiprocessors, kSuccess;
    case 38:
      return *value = 256 << 10, kSuccess;  // L2
    case 39:
      return *value = kThreadsPerMultiprocessor, kSuccess;
    case 75:
      return *value = 9, kSuccess;
    case 76:
      return *value = 0, kSuccess;
    case 81:
      return *value = kSharedPerMultiprocessor, kSuccess;
    case 82:
      return *value = 65536, kSuccess;
    case 97:
      return *value = kSharedPerBlock, kSuccess;
    case 106:
      return *value = kMaxBlocks, kSuccess;
    default:
      return kInvalidValue;
  }
}
Result cuDevicePrimaryCtxRetain(void** context, int) { return *context = &memory, kSuccess; }
Result cuCtxSetCurrent(void*) { return kSuccess; }
Result cuCtxGetCurrent(void** context) { return *context = &memory, kSuccess; }
Result cuCtxSetLimit(int, size_t) { return kSuccess; }
Result cuCtxSynchronize() {
  HOST_GPU_CALL();
  return WaitForAll();
}

Result cuModuleLoadData(LoadedModule** module, const void* cubin) {
  HOST_GPU_CALL();
  std::shared_ptr<Module> loaded = Load(static_cast<const char*>(cubin));
  if (loaded == nullptr) return kNoImage;
  *module = new LoadedModule{std::move(loaded), {}};
  return kSuccess;
}
Result cuModuleUnload(LoadedModule* module) {
  HOST_GPU_CALL();
  for (size_t i = 0; i < module->module->image->variable_count; ++i) {
    memory.RemoveVariable(reinterpret_cast<uint64_t>(module->module->image->variables[i].address));
  }
  module->module->unloaded = true;  // what is queued and needs it fails
  delete module;
  return kSuccess;
}
Result cuModuleGetFunction(Function** function, LoadedModule* module, const char* name) {
  HOST_GPU_CALL();
  const Image& image = *module->module->image;
  for (size_t i = 0; i < image.entry_count; ++i) {
    if (strcmp(image.entries[i].name, name) != 0) continue;
    *function = &module->functions.emplace_back(Function{&image.entries[i], module->module});
    return kSuccess;
  }
  return kNotFound;
}
Result cuModuleGetGlobal_v2(DevicePtr* address, size_t* bytes, LoadedModule* module, const char* name) {
  HOST_GPU_CALL();
  const Image& image = *module->module->image;
  for (size_t i = 0; i < image.variable_count; ++i) {
    if (strcmp(image.variables[i].name, name) != 0) continue;
    *address = reinterpret_cast<uint64_t>(image.variables[i].address);
    *bytes = image.variables[i].bytes;
    return kSuccess;
  }
  return kNotFound;
}
Result cuFuncGetAttribute(int* value, int attribute, Function*) {
  *value = attribute == 0 ? kMaxThreads : attribute == 4 ? 32 : 0;
  return kSuccess;
}
Result cuFuncSetAttribute(Function*, int attribute, int value) {
  return attribute == 8 && value > static_cast<int>(kSharedPerBlock) ? kInvalidValue : kSuccess;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function*, int threads, size_t shared_bytes) {
  *blocks = std::min(kMaxBlocks, kThreadsPerMultiprocessor / std::max(1, threads));
  if (shared_bytes > 0) *blocks = std::min(*blocks, static_cast<int>(kSharedPerMultiprocessor / shared_bytes));
  return kSuccess;
}

Result cuMemAlloc_v2(DevicePtr* address, size_t bytes) {
  HOST_GPU_CALL();
  if (bytes == 0) return kInvalidValue;
  *address = memory.Allocate(bytes);
  return *address == 0 ? kOutOfMemory : kSuccess;
}
Result cuMemFree_v2(DevicePtr address) {
  HOST_GPU_CALL();
  return memory.Free(address) ? kSuccess : kInvalidValue;
}
Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  HOST_GPU_CALL();
  *free = memory.free();
  *total = kTotalBytes;
  return kSuccess;
}
// Waits for the default stream alone: streams that do not wait for it go on.
Result cuMemcpyDtoH_v2(void* to, DevicePtr from, size_t bytes) {
  HOST_GPU_CALL();
  if (!memory.Has(from, bytes)) return kInvalidValue;
  if (const Result result = Wait(default_stream); result != kSuccess) return result;
  memcpy(to, Pointer(from), bytes);
  return kSuccess;
}
// The bytes are staged when it returns, and arrive some time later.
Result cuMemcpyHtoD_v2(DevicePtr to, const void* from, size_t bytes) {
  HOST_GPU_CALL();
  if (!memory.Has(to, bytes)) return kInvalidValue;
  auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  default_stream.Queue([to, staged] {
    if (!memory.Has(to, staged->size())) return lost = kIllegalAddress, 0.0;
    memcpy(Pointer(to), staged->data(), staged->size());
    return CopyUs(staged->size());
  });
  return kSuccess;
}
// From the device to the host, which is all that is asked for.
struct Copy2D {
  size_t from_x, from_y;
  int from_type;
  const void* from_host;
  DevicePtr from_device;
  void* from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  int to_type;
  void* to_host;
  DevicePtr to_device;
  void* to_array;
  size_t to_pitch;
  size_t width, height;
};
Result cuMemcpy2DAsync_v2(const Copy2D* asked, void* stream) {
  HOST_GPU_CALL();
  const Copy2D copy = *asked;
  if (copy.from_type != 2 || copy.to_type != 1 || copy.height == 0) return kInvalidValue;
  const size_t from_bytes = (copy.height - 1) * copy.from_pitch + copy.width;
  const size_t to_bytes = (copy.height - 1) * copy.to_pitch + copy.width;
  if (copy.from_pitch < copy.width || copy.to_pitch < copy.width) return kInvalidValue;
  if (!memory.Has(copy.from_device, from_bytes)) return kInvalidValue;
  StreamOf(stream).Queue([copy, from_bytes] {
    if (!memory.Has(copy.from_device, from_bytes)) return lost = kIllegalAddress, 0.0;
    for (size_t row = 0; row < copy.height; ++row) {
      memcpy(static_cast<char*>(copy.to_host) + row * copy.to_pitch, Pointer(copy.from_device + row * copy.from_pitch),
             copy.width);
    }
    return CopyUs(copy.height * copy.width);
  });
  if (!memory.IsRegistered(copy.to_host, to_bytes) && !StreamOf(stream).capturing()) return Wait(StreamOf(stream));
  return kSuccess;
}
Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes, void* stream) {
  HOST_GPU_CALL();
  if (!memory.Has(to, bytes)) return kInvalidValue;
  std::shared_ptr<std::string> staged;
  if (!memory.IsRegistered(from, bytes)) {
    staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  }
  StreamOf(stream).Queue([to, from, bytes, staged] {
    if (!memory.Has(to, bytes)) return lost = kIllegalAddress, 0.0;
    memcpy(Pointer(to), staged != nullptr ? staged->data() : from, bytes);
    return CopyUs(bytes);
  });
  return kSuccess;
}
Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes, void* stream) {
  HOST_GPU_CALL();
  if (!memory.Has(to, bytes) || !memory.Has(from, bytes)) return kInvalidValue;
  StreamOf(stream).Queue([to, from, bytes] {
    if (!memory.Has(to, bytes) || !memory.Has(from, bytes)) return lost = kIllegalAddress, 0.0;
    memmove(Pointer(to), Pointer(from), bytes);
    return CopyUs(bytes);
  });
  return kSuccess;
}
Result cuMemsetD8Async(DevicePtr to, unsigned char value, size_t bytes, void* stream) {
  HOST_GPU_CALL();
  if (!memory.Has(to, bytes)) return kInvalidValue;
  StreamOf(stream).Queue([to, value, bytes] {
    if (!memory.Has(to, bytes)) return lost = kIllegalAddress, 0.0;
    memset(Pointer(to), value, bytes);
    return CopyUs(bytes);
  });
  return kSuccess;
}
Result cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  HOST_GPU_CALL();
  memory.Register(data, bytes);
  return kSuccess;
}
Result cuMemHostUnregister(void* data) {
  HOST_GPU_CALL();
  return memory.Unregister(data) ? kSuccess : kInvalidValue;
}

Result cuStreamCreate(void** stream, unsigned flags) {
  HOST_GPU_CALL();
  if (flags != 1) return kInvalidValue;  // Pawl's do not wait for the default stream
  *stream = &streams.emplace_back();
  return kSuccess;
}
Result cuStreamDestroy_v2(void* stream) {
  HOST_GPU_CALL();
  StreamOf(stream).Finish();
  streams.remove_if([&](const Stream& other) { return &other == stream; });
  return lost;
}
Result cuStreamSynchronize(void* stream) {
  HOST_GPU_CALL();
  return Wait(StreamOf(stream));
}
Result cuStreamBeginCapture_v2(void* stream, int) {
  HOST_GPU_CALL();
  if (stream == nullptr || StreamOf(stream).capturing()) return kInvalidHandle;
  StreamOf(stream).BeginCapture();
  return kSuccess;
}
Result cuStreamEndCapture(void* stream, Graph** graph) {
  HOST_GPU_CALL();
  if (!StreamOf(stream).capturing()) return kInvalidHandle;
  *graph = new Graph(StreamOf(stream).EndCapture());
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long) {
  HOST_GPU_CALL();
  *executable = new Graph(*graph);
  return kSuccess;
}
Result cuGraphLaunch(Graph* executable, void* stream) {
  HOST_GPU_CALL();
  StreamOf(stream).Queue([graph = *executable] {
    const double start = HostMicroseconds();
    double us = 0;
    for (const Work& work : *graph) us += work();
    return std::max(us, HostMicroseconds() - start);
  });
  return kSuccess;
}
Result cuGraphExecDestroy(Graph* executable) {
  HOST_GPU_CALL();
  delete executable;
  return kSuccess;
}
Result cuGraphDestroy(Graph* graph) {
  HOST_GPU_CALL();
  delete graph;
  return kSuccess;
}

Result cuEventCreate(Event** event, unsigned) {
  HOST_GPU_CALL();
  *event = new Event;
  return kSuccess;
}
Result cuEventRecord(Event* event, void* stream) {
  HOST_GPU_CALL();
  event->recorded = false;
  Stream* const of = &StreamOf(stream);
  of->Queue([event, of] {
    event->recorded = true;
    event->at = of->end();
    return 0.0;
  });
  return kSuccess;
}
Result cuEventElapsedTime(float* ms, const Event* from, const Event* to) {
  HOST_GPU_CALL();
  if (!from->recorded || !to->recorded) return kNotReady;
  *ms = static_cast<float>((to->at - from->at) * 1e-3);
  return kSuccess;
}

Result cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                      void**) {
  HOST_GPU_CALL();
  return QueueLaunch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, arguments);
}

// CUlaunchConfig, as far as blocks of a cooperative launch or of a cluster run one after another too.
struct LaunchConfig {
  Extent grid, block;
  unsigned shared_bytes;
  void* stream;
};
Result cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** arguments, void**) {
  HOST_GPU_CALL();
  return QueueLaunch(function, config->grid, config->block, config->shared_bytes, config->stream, arguments);
}
// NVRTC, too, looks for the driver, and gets along without this.
Result cuGetExportTable(const void** table, const void*) { return *table = nullptr, kNotFound; }
Result cuProfilerStart() { return kSuccess; }
Result cuProfilerStop() { return kSuccess; }
}
