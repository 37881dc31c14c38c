#include "worker/build/cached_compiler.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigest = 64;  // of the content, in front of it

// Maps have an order of their own in every process, unless one asks for another.
std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

struct CachedFile {
  fs::path path;
  int64_t bytes = 0;
  fs::file_time_type used;
};

std::vector<CachedFile> FilesIn(const fs::path& folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_file;
    if (!it->is_regular_file(of_file)) continue;
    CachedFile file{it->path(), static_cast<int64_t>(it->file_size(of_file)), it->last_write_time(of_file)};
    if (!of_file) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

fs::path DefaultBuildCache() {
  if (const char* own = getenv("PAWL_BUILD_CACHE"); own != nullptr) return own;
  if (const char* caches = getenv("XDG_CACHE_HOME"); caches != nullptr && caches[0] == '/') {
    return fs::path(caches) / "pawl" / "builds";
  }
  if (const char* home = getenv("HOME"); home != nullptr && home[0] == '/') {
    return fs::path(home) / ".cache" / "pawl" / "builds";
  }
  return "";
}

CachedCompiler::CachedCompiler(Compiler& compiler, BuildCacheOptions options)
    : compiler_(compiler), options_(std::move(options)) {}

BuildCounts CachedCompiler::TakeCounts() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(counts_, {});
}

std::string CachedCompiler::fault() const {
  absl::MutexLock lock(&mutex_);
  return fault_;
}

fs::path CachedCompiler::FileOf(const v1::BuildRequest& request) const {
  for (const std::string& library : request.include()) {
    if (options_.uncached.contains(library)) return "";
  }
  v1::BuildRequest what = request;
  what.clear_deadline_seconds();
  const std::string key = Sha256(absl::StrCat(options_.toolchain, "\n", Deterministic(what)));
  return options_.folder / key.substr(0, 2) / key;
}

bool CachedCompiler::Read(const fs::path& file, v1::BuildReply* reply) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::error_code error;
  if (content.size() < kDigest || content.substr(0, kDigest) != Sha256(content.substr(kDigest)) ||
      !reply->ParseFromString(content.substr(kDigest))) {
    fs::remove(file, error);
    return false;
  }
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);  // used now; a folder that is read only stays so
  return true;
}

void CachedCompiler::Write(const fs::path& file, const v1::BuildReply& reply) {
  static std::atomic<uint64_t> number = 0;
  const std::string bytes = Deterministic(reply);
  const fs::path part = absl::StrCat(file.string(), ".", getpid(), "-", ++number, ".part");
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  bool written = !error;
  if (written) {
    std::ofstream out(part, std::ios::binary);
    out << Sha256(bytes) << bytes;
    out.close();
    written = static_cast<bool>(out);
  }
  const int number_of_error = errno;
  if (written) {
    fs::rename(part, file, error);
    written = !error;
  }
  absl::MutexLock lock(&mutex_);
  if (!written) {
    std::error_code ignored;
    fs::remove(part, ignored);
    if (fault_.empty()) {
      fault_ = absl::StrCat("builds can't be kept in ", options_.folder.string(), ": ",
                            error ? error.message() : strerror(number_of_error));
    }
    return;
  }
  fault_.clear();
  if (bytes_ < 0) {
    bytes_ = 0;
    for (const CachedFile& each : FilesIn(options_.folder)) bytes_ += each.bytes;
  } else {
    bytes_ += static_cast<int64_t>(kDigest + bytes.size());
  }
  if (bytes_ > options_.max_bytes) MakeRoom();
}

void CachedCompiler::MakeRoom() {
  std::vector<CachedFile> files = FilesIn(options_.folder);
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) { return a.used < b.used; });
  bytes_ = 0;
  for (const CachedFile& file : files) bytes_ += file.bytes;
  for (const CachedFile& file : files) {
    if (bytes_ <= options_.max_bytes / 10 * 9) return;
    std::error_code error;
    if (fs::remove(file.path, error)) bytes_ -= file.bytes;
  }
}

absl::StatusOr<v1::BuildReply> CachedCompiler::Build(const v1::BuildRequest& request, const Stopped& stopped) {
  return std::move(BuildBeside({request}, stopped)[0]);
}

std::vector<absl::StatusOr<v1::BuildReply>> CachedCompiler::BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                        const Stopped& stopped) {
  if (options_.folder.empty()) return compiler_.BuildBeside(requests, stopped);
  std::vector<absl::StatusOr<v1::BuildReply>> replies(requests.size(), absl::InternalError("not built"));
  std::vector<v1::BuildRequest> missing;
  std::vector<size_t> places;  // of the missing
  std::vector<fs::path> files;
  for (size_t i = 0; i < requests.size(); ++i) {
    const fs::path file = FileOf(requests[i]);
    v1::BuildReply reply;
    if (!file.empty() && Read(file, &reply)) {
      reply.set_seconds(0);
      replies[i] = std::move(reply);
      continue;
    }
    missing.push_back(requests[i]);
    places.push_back(i);
    files.push_back(file);
  }
  {
    absl::MutexLock lock(&mutex_);
    counts_.compiled += static_cast<int>(missing.size());
    counts_.cached += static_cast<int>(requests.size() - missing.size());
  }
  if (missing.empty()) return replies;
  std::vector<absl::StatusOr<v1::BuildReply>> built = compiler_.BuildBeside(missing, stopped);
  for (size_t i = 0; i < built.size(); ++i) {
    if (!files[i].empty() && built[i].ok() && !built[i]->cubin().empty() && !built[i]->has_failure() &&
        built[i]->host_error().empty()) {
      Write(files[i], *built[i]);
    }
    replies[places[i]] = std::move(built[i]);
  }
  return replies;
}

}  // namespace pawl
