#include "worker/replay/recording.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/space.h"
#include "worker/replay/recorded_speedups.h"

namespace pawl {

namespace {

namespace json = google::protobuf::util;

// Bytes, unpacked.
constexpr size_t kMostInHeader = 64 << 20, kMostInRecording = 1 << 30;

std::string ToLine(const google::protobuf::Message& message) {
  std::string line;
  (void)json::MessageToJsonString(message, &line);  // fails on Any and such only, which recordings lack
  line += '\n';
  return line;
}

absl::StatusOr<std::string> ReadText(const std::filesystem::path& file, bool first_line = false) {
  std::error_code error;
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " is no file; expected a recording (.jsonl.gz)"));
  }
  gzFile in = gzopen(file.c_str(), "rb");  // reads plain files too
  if (in == nullptr) return absl::NotFoundError(absl::StrCat(file.string(), ": ", strerror(errno)));
  const size_t most = first_line ? kMostInHeader : kMostInRecording;
  std::string text;
  char block[1 << 16];
  int read = 0;
  while (text.size() <= most && (read = gzread(in, block, sizeof(block))) > 0) {
    text.append(block, read);
    if (first_line && memchr(block, '\n', read) != nullptr) break;
  }
  const int closed = gzclose(in);
  if (text.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " has more than ", most >> 20, " MB unpacked",
                                                   first_line ? " in its first line" : "", ": it is no recording"));
  }
  if (read < 0 || closed != Z_OK)
    return absl::DataLossError(absl::StrCat(file.string(), " is damaged: it does not unpack"));
  return text;
}

}  // namespace

void Recording::Put(const v1::RecordedVariant& variant) {
  const auto [place, added] = places_.emplace(VariantText(variant.variant()), variants.size());
  if (added) {
    variants.push_back(variant);
  } else {
    variants[place->second] = variant;
  }
}

absl::StatusOr<v1::RecordingHeader> ReadRecordingHeader(const std::filesystem::path& file) {
  absl::StatusOr<std::string> text = ReadText(file, /*first_line=*/true);
  if (!text.ok()) return text.status();
  v1::RecordingHeader header;
  const auto parsed = json::JsonStringToMessage(text->substr(0, text->find('\n')), &header);
  if (!parsed.ok() || header.bundle().empty()) {
    return absl::DataLossError(absl::StrCat(file.string(), " is not a recording: its first line names no bundle"));
  }
  return header;
}

absl::StatusOr<Recording> ReadRecording(const std::filesystem::path& file, bool torn_tail) {
  absl::StatusOr<std::string> text = ReadText(file);
  if (!text.ok()) return text.status();
  Recording recording;
  std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  if (!lines.back().empty() && torn_tail) lines.back() = "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    v1::RecordedVariant variant;
    const auto parsed = i == 0 ? json::JsonStringToMessage(std::string(lines[i]), &recording.header)
                               : json::JsonStringToMessage(std::string(lines[i]), &variant);
    if (!parsed.ok()) {
      return absl::DataLossError(
          absl::StrCat(file.string(), ":", i + 1, ": not a line of a recording: ", parsed.ToString()));
    }
    if (i > 0) recording.Put(variant);
  }
  if (recording.header.bundle().empty()) {
    return absl::DataLossError(absl::StrCat(file.string(), " is not a recording: its first line names no bundle"));
  }
  if (torn_tail) return recording;  // what a variant was measured beside may be yet to come
  if (const RecordedSpeedups speedups = SpeedupsOf(recording.header, recording.variants); !speedups.problem.empty()) {
    return absl::DataLossError(absl::StrCat(file.string(), " can't be used: ", speedups.problem));
  }
  return recording;
}

absl::Status WriteRecording(const std::filesystem::path& file, const Recording& recording) {
  const std::string beside = file.string() + ".new";
  gzFile out = gzopen(beside.c_str(), "wb9");
  bool written = out != nullptr;
  auto write = [&](const google::protobuf::Message& message) {
    const std::string line = ToLine(message);
    written = written && gzwrite(out, line.data(), line.size()) == static_cast<int>(line.size());
  };
  write(recording.header);
  for (const v1::RecordedVariant& variant : recording.variants) write(variant);
  if (out != nullptr) written = gzclose(out) == Z_OK && written;
  std::error_code error;
  if (written) std::filesystem::rename(beside, file, error);
  if (!written || error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("can't write ", file.string(), ": is the disk full, the folder there?"));
  }
  return absl::OkStatus();
}

std::filesystem::path RecordingFileAt(const std::filesystem::path& file, const std::string& size) {
  std::string name = file.filename().string(), word;
  for (const char c : size) word += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  const absl::string_view stem = absl::StripSuffix(name, ".jsonl.gz");
  return file.parent_path() / absl::StrCat(stem, ".", word, ".jsonl.gz");
}

absl::StatusOr<RecordingJournal> RecordingJournal::Open(const std::filesystem::path& file,
                                                        const v1::RecordingHeader& header) {
  const bool resumed = Begun(file);
  Fd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid())
    return absl::PermissionDeniedError(absl::StrCat("can't write ", file.string(), ": ", strerror(errno)));
  RecordingJournal journal(std::move(fd), file);
  if (!resumed) {
    if (ftruncate(journal.fd_.get(), 0) != 0) return absl::InternalError(absl::StrCat("ftruncate: ", strerror(errno)));
    journal.recording_.header = header;
    if (absl::Status status = journal.AppendLine(header); !status.ok()) return status;
    return journal;
  }
  absl::StatusOr<Recording> read = ReadRecording(file, /*torn_tail=*/true);
  if (!read.ok()) return read.status();
  const v1::RecordingHeader& old = read->header;
  auto differs = [&](const char* what, const auto& then, const auto& now) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), " was begun with another ", what, " (", then,
                                                      ", now ", now,
                                                      "): remove it to start over, or name another --output"));
  };
  if (old.bundle_hash() != header.bundle_hash()) return differs("bundle", old.bundle_hash(), header.bundle_hash());
  if (old.size() != header.size()) return differs("size", old.size(), header.size());
  if (old.planned() != header.planned()) return differs("number of variants", old.planned(), header.planned());
  if (old.gpu().name() != header.gpu().name()) return differs("GPU", old.gpu().name(), header.gpu().name());
  if (old.gpu().driver_version() != header.gpu().driver_version()) {
    return differs("driver", old.gpu().driver_version(), header.gpu().driver_version());
  }
  journal.recording_ = *std::move(read);
  // A torn last line would run into the next one.
  absl::StatusOr<std::string> text = ReadText(file);
  if (!text.ok()) return text.status();
  if (ftruncate(journal.fd_.get(), text->rfind('\n') + 1) != 0) {
    return absl::InternalError(absl::StrCat("ftruncate: ", strerror(errno)));
  }
  return journal;
}

bool RecordingJournal::Begun(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  absl::StatusOr<std::string> text = ReadText(file);
  return text.ok() && text->find('\n') != std::string::npos;
}

absl::Status RecordingJournal::Append(const v1::RecordedVariant& variant) {
  recording_.Put(variant);
  return AppendLine(variant);
}

absl::Status RecordingJournal::AppendLine(const google::protobuf::Message& message) {
  const std::string line = ToLine(message);
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = write(fd_.get(), line.data() + done, line.size() - done);
    if (written < 0)
      return absl::ResourceExhaustedError(absl::StrCat("can't write ", file_.string(), ": ", strerror(errno)));
    done += written;
  }
  if (fdatasync(fd_.get()) != 0) return absl::InternalError(absl::StrCat(file_.string(), ": ", strerror(errno)));
  return absl::OkStatus();
}

namespace fs = std::filesystem;

fs::path FindRecordingsFolder() {
  std::error_code error;
  return FindRecordingsFolder(fs::read_symlink("/proc/self/exe", error).parent_path());
}

fs::path FindRecordingsFolder(const fs::path& program_folder) {
  std::error_code error;
  const fs::path packaged = program_folder.parent_path() / "share/pawl/profiles/recordings";
  if (fs::is_directory(packaged, error)) return packaged;
  for (fs::path folder = program_folder; !folder.empty(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "profiles/recordings", error)) return folder / "profiles/recordings";
    if (folder == folder.parent_path()) break;
  }
  return {};
}

}  // namespace pawl
