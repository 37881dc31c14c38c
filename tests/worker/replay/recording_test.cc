#include "worker/replay/recording.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::RecordingHeader Header() {
  v1::RecordingHeader header;
  header.set_bundle("scale_rows");
  header.set_bundle_hash("5ca1e");
  header.set_size("main");
  header.set_planned(3);
  header.mutable_gpu()->set_name("NVIDIA H200");
  header.mutable_gpu()->set_driver_version("580");
  header.mutable_gpu()->set_memory_bytes(int64_t{150} << 30);
  return header;
}

v1::RecordedVariant Variant(int tile, double us) {
  v1::RecordedVariant record;
  (*record.mutable_variant()->mutable_values())["TILE"] = tile;
  (*record.mutable_variant()->mutable_values())["SPLITS"] = 1;
  record.set_warm_us(us);
  return record;
}

std::string Text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteText(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class RecordingTest : public testing::Test {
 protected:
  // A journal with these variants, closed again.
  void Journal(const std::vector<v1::RecordedVariant>& variants) {
    absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(file_, Header());
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (const v1::RecordedVariant& variant : variants) ASSERT_TRUE(journal->Append(variant).ok());
  }

  const TemporaryFolder folder_{"pawl-recording-test-"};
  const fs::path file_ = folder_.path() / "some.jsonl.gz";
};

TEST_F(RecordingTest, ComesBackFromItsFileAsItWas) {
  Recording recording;
  recording.header = Header();
  v1::RecordedVariant measured = Variant(64, 0.1 + 0.2);
  measured.add_pairs()->mutable_before()->set_throttle_reasons(std::numeric_limits<uint64_t>::max());
  measured.add_errors()->set_max_absolute(std::numeric_limits<double>::infinity());
  v1::RecordedVariant failed = Variant(32, 0);
  failed.mutable_failure()->set_check(v1::CHECK_TOLERANCE);
  failed.mutable_failure()->set_message("line one\n\"line\" two");
  recording.Put(measured);
  recording.Put(failed);
  ASSERT_TRUE(WriteRecording(file_, recording).ok());
  EXPECT_THAT(Text(file_), StartsWith("\x1f\x8b"));  // gzip's mark

  const absl::StatusOr<Recording> read = ReadRecording(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(MessageDifferencer::Equals(read->header, recording.header)) << read->header.DebugString();
  ASSERT_EQ(read->variants.size(), 2u);
  EXPECT_TRUE(MessageDifferencer::Equals(read->variants[0], measured)) << read->variants[0].DebugString();
  EXPECT_TRUE(MessageDifferencer::Equals(read->variants[1], failed)) << read->variants[1].DebugString();
}

TEST_F(RecordingTest, GivesItsHeaderWithoutTheRest) {
  Recording recording;
  recording.header = Header();
  recording.Put(Variant(64, 1));
  ASSERT_TRUE(WriteRecording(file_, recording).ok());
  const absl::StatusOr<v1::RecordingHeader> header = ReadRecordingHeader(file_);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*header, recording.header)) << header->DebugString();
  WriteText(file_, "no recording\n");
  EXPECT_TRUE(absl::IsDataLoss(ReadRecordingHeader(file_).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadRecordingHeader(file_.string() + ".none").status()));
}

TEST_F(RecordingTest, ReplacesTheFileThatIsThereAndLeavesNothingBeside) {
  WriteText(file_, "old");
  Recording recording;
  recording.header = Header();
  ASSERT_TRUE(WriteRecording(file_, recording).ok());
  EXPECT_TRUE(ReadRecording(file_).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(RecordingTest, WaitsForNoPipeAndReadsNoDevice) {
  const fs::path pipe = folder_.path() / "pipe.jsonl.gz";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& file : {pipe, fs::path("/dev/zero")}) {
    EXPECT_THAT(std::string(ReadRecording(file).status().message()), HasSubstr("expected a recording")) << file;
    EXPECT_FALSE(ReadRecordingHeader(file).ok());
  }
}

TEST_F(RecordingTest, SaysThatItCantBeWritten) {
  const absl::Status status = WriteRecording(folder_.path() / "missing" / "file.gz", Recording());
  EXPECT_THAT(Message(status), HasSubstr("missing/file.gz"));
  EXPECT_THAT(Message(RecordingJournal::Open(folder_.path() / "missing" / "file", Header()).status()),
              HasSubstr("missing/file: No such file or directory"));
}

TEST_F(RecordingTest, TakesTheLastLineOfAVariant) {
  Journal({Variant(64, 1), Variant(32, 2), Variant(64, 3)});
  const absl::StatusOr<Recording> read = ReadRecording(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->variants.size(), 2u);
  EXPECT_EQ(read->variants[0].warm_us(), 3);
  EXPECT_EQ(read->variants[1].warm_us(), 2);
}

TEST_F(RecordingTest, HoldsAnAppendedVariantOnDiskAtOnce) {
  absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(file_, Header());
  ASSERT_TRUE(journal.ok()) << journal.status();
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(journal->Append(Variant(i, i)).ok());
    ASSERT_EQ(ReadRecording(file_).value().variants.size(), i);
    EXPECT_EQ(journal->recording().variants.size(), i);
  }
}

TEST_F(RecordingTest, GoesOnBehindATornLastLine) {
  Journal({Variant(64, 1), Variant(64, 2), Variant(32, 3)});
  const std::string before = Text(file_);
  WriteText(file_, before.substr(0, before.size() - 5));
  {
    absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(file_, Header());
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_EQ(journal->recording().variants.size(), 1u);
    EXPECT_EQ(journal->recording().variants[0].warm_us(), 2);
    // What was whole stays as it was: a crash while the journal is opened loses nothing.
    const std::string whole = before.substr(0, before.rfind('\n', before.size() - 2) + 1);
    EXPECT_EQ(Text(file_), whole);
    ASSERT_TRUE(journal->Append(Variant(16, 4)).ok());
  }
  const absl::StatusOr<Recording> read = ReadRecording(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->variants.size(), 2u);
  EXPECT_EQ(read->variants[1].warm_us(), 4);
}

TEST_F(RecordingTest, BeginsAnewWhereNotEvenTheHeaderIsWhole) {
  for (const char* text : {"", "{\"bundle\": \"sca"}) {
    WriteText(file_, text);
    EXPECT_FALSE(RecordingJournal::Begun(file_));
    Journal({Variant(64, 1)});
    EXPECT_TRUE(RecordingJournal::Begun(file_));
    EXPECT_EQ(ReadRecording(file_).value().variants.size(), 1u);
  }
}

TEST_F(RecordingTest, KeepsTheHeaderThatTheJournalWasBegunWith) {
  v1::RecordingHeader first = Header();
  first.set_date("2026-01-02T03:04:05Z");
  ASSERT_TRUE(RecordingJournal::Open(file_, first).ok());
  EXPECT_EQ(RecordingJournal::Open(file_, Header()).value().recording().header.date(), first.date());
}

TEST_F(RecordingTest, RefusesToGoOnWithSomethingElseAndSaysWhatDiffers) {
  Journal({Variant(64, 1)});
  const std::string before = Text(file_);
  const auto refusal = [&](auto change) {
    v1::RecordingHeader header = Header();
    change(header);
    return Message(RecordingJournal::Open(file_, header).status());
  };
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.set_bundle_hash("07e4"); }),
              AllOf(HasSubstr(file_.string()), HasSubstr("another bundle (5ca1e, now 07e4)"), HasSubstr("remove it")));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.mutable_gpu()->set_name("Tesla T4"); }),
              HasSubstr("another GPU (NVIDIA H200, now Tesla T4)"));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.mutable_gpu()->set_driver_version("999"); }),
              HasSubstr("another driver (580, now 999)"));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.set_size("tiny"); }), HasSubstr("another size (main, now tiny)"));
  EXPECT_THAT(refusal([](v1::RecordingHeader& h) { h.set_planned(9); }),
              HasSubstr("another number of variants (3, now 9)"));
  EXPECT_EQ(Text(file_), before);
}

TEST_F(RecordingTest, SaysThatAFileIsDamaged) {
  Recording recording;
  recording.header = Header();
  for (int i = 0; i < 100; ++i) recording.Put(Variant(i, i / 7.0));
  ASSERT_TRUE(WriteRecording(file_, recording).ok());
  const std::string whole = Text(file_);
  WriteText(file_, whole.substr(0, whole.size() / 2));
  absl::Status status = ReadRecording(file_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr(file_.string() + " is damaged"));

  std::string changed = whole;
  changed[changed.size() - 6] ^= 1;  // in the checksum
  WriteText(file_, changed);
  EXPECT_THAT(Message(ReadRecording(file_).status()), HasSubstr("is damaged"));
}

TEST_F(RecordingTest, SaysThatAFileIsNoRecording) {
  EXPECT_TRUE(absl::IsNotFound(ReadRecording(file_).status()));
  EXPECT_THAT(Message(ReadRecording(file_).status()), HasSubstr(file_.string() + ": No such file"));
  for (const char* text : {"", "\n", "{}\n"}) {
    WriteText(file_, text);
    EXPECT_THAT(Message(ReadRecording(file_).status()), HasSubstr("is not a recording")) << text;
  }
  for (const char* text : {"hello\n", "{\"nope\": 1}\n", "[1]\n"}) {
    WriteText(file_, text);
    EXPECT_THAT(Message(ReadRecording(file_).status()), HasSubstr(":1: not a line of a recording")) << text;
  }
}

TEST_F(RecordingTest, NamesTheLineThatIsWrong) {
  Journal({Variant(64, 1), Variant(32, 2)});
  std::string text = Text(file_);
  WriteText(file_, text + "{\"variant\": ");
  EXPECT_THAT(Message(ReadRecording(file_).status()), HasSubstr(":4: not a line"));
  EXPECT_TRUE(ReadRecording(file_, /*torn_tail=*/true).ok());
  // Only the last line can have been cut off by a broken-off recording.
  text.insert(text.find('\n') + 5, "?");
  WriteText(file_, text);
  EXPECT_THAT(Message(ReadRecording(file_, /*torn_tail=*/true).status()), HasSubstr(":2: not a line"));
}

}  // namespace
}  // namespace pawl
