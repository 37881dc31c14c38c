#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/recording.pb.h"
#include "worker/process/process.h"

namespace pawl {

// What the #error of a source says that `pawl import` wrote: it has recordings in place of code.
inline constexpr char kImportedCode[] =
    "this bundle was imported: it has no device code, and only --device replay can run it";

// One JSON object a line: the header, then a variant each. Recordings are gzip-compressed; a journal is not.
struct Recording {
  v1::RecordingHeader header;
  std::vector<v1::RecordedVariant> variants;

  void Put(const v1::RecordedVariant& variant);

 private:
  std::map<std::string, size_t> places_;  // by the variant's text
};

// Reads compressed and plain files; of several lines of one variant the last counts. A last line that was cut off is
// dropped when `torn_tail` allows it. A variant whose pairs do not lead to the start is an error, except in a journal.
absl::StatusOr<Recording> ReadRecording(const std::filesystem::path& file, bool torn_tail = false);

// The header only: the rest is not unpacked.
absl::StatusOr<v1::RecordingHeader> ReadRecordingHeader(const std::filesystem::path& file);

// Writes beside the file and renames, so that a reader sees the old one or the new one.
absl::Status WriteRecording(const std::filesystem::path& file, const Recording& recording);

// Where the recording of another size lies beside a goal's: x.h200.jsonl.gz and x.h200.large.jsonl.gz.
std::filesystem::path RecordingFileAt(const std::filesystem::path& file, const std::string& size);

// A recording under way: each line is on disk before Append returns, so that a broken-off recording can go on.
class RecordingJournal {
 public:
  // Whether there is a journal with a header to go on with.
  static bool Begun(const std::filesystem::path& file);
  // Goes on with the journal that is there if its header is of the same bundle, size, GPU, driver and number of planned
  // variants; an error says what differs otherwise.
  static absl::StatusOr<RecordingJournal> Open(const std::filesystem::path& file, const v1::RecordingHeader& header);

  // A variant that is there already is replaced: its later line counts.
  absl::Status Append(const v1::RecordedVariant& variant);
  const Recording& recording() const { return recording_; }

 private:
  RecordingJournal(Fd fd, std::filesystem::path file) : fd_(std::move(fd)), file_(std::move(file)) {}
  absl::Status AppendLine(const google::protobuf::Message& message);

  Fd fd_;
  std::filesystem::path file_;
  Recording recording_;
};

// Where the recordings that ship with Pawl lie: ../share/pawl/profiles/recordings of the program in a package,
// profiles/recordings of the checkout it was built in. Empty: neither is there.
std::filesystem::path FindRecordingsFolder();
std::filesystem::path FindRecordingsFolder(const std::filesystem::path& program_folder);

}  // namespace pawl
