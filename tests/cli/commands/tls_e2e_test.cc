// The three programs over TLS, with certificates from scripts/make-certificates and with tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/connect/daemon.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    const ProcessResult made =
        Run({absl::StrCat(getenv("PAWL_SOURCE_DIR"), "/scripts/make-certificates"), File("certificates")});
    ASSERT_TRUE(made.ok()) << made.err;
    Words arguments = {"--listen",      "127.0.0.1:0", "--database",
                       File("pawl.db"), "--tokens",    Secret("tokens", "read 0123456789abcdef\n")};
    Add(Certificate("orchestrator"), &arguments);
    orchestrator_ =
        Daemon::Start({.program = "pawl-orchestrator", .arguments = arguments, .log = File("log"), .announces = true})
            .value();
    const absl::StatusOr<std::string> line = orchestrator_->FirstLine(absl::Minutes(1));
    ASSERT_TRUE(line.ok()) << line.status();
    address_ = std::string(absl::StripPrefix(*line, "listening on "));
  }

  std::string File(const std::string& name) const { return folder_.path() / name; }
  std::string Secret(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
    chmod(File(name).c_str(), 0600);
    return File(name);
  }
  Words Certificate(const std::string& name) const {
    const std::string stem = File("certificates/");
    return {"--tls-cert", stem + name + ".crt", "--tls-key", stem + name + ".key", "--tls-ca", stem + "ca.crt"};
  }
  static void Add(const Words& more, Words* words) { words->insert(words->end(), more.begin(), more.end()); }

  ProcessResult Run(Words argv) const {
    ProcessOptions options;
    options.argv = std::move(argv);
    options.env = {{"HOME", folder_.path()}};
    return RunProcess(options).value();
  }
  ProcessResult Pawl(Words words, const Words& credentials) const {
    words.insert(words.begin(), absl::StrCat(getenv("PAWL_BIN_DIR"), "/pawl"));
    Add({"--orchestrator", address_}, &words);
    Add(credentials, &words);
    return Run(words);
  }

  const TemporaryFolder folder_{"pawl-tls-"};
  std::unique_ptr<Daemon> orchestrator_;
  std::string address_;
};

TEST_F(TlsTest, CarriesACampaignFromItsSubmissionToItsEnd) {
  Words arguments = {"--orchestrator", address_, "--device", "replay"};
  Add(Certificate("work"), &arguments);
  const auto worker = Daemon::Start({.program = "pawl-worker", .arguments = arguments, .log = File("log")}).value();
  const ProcessResult submitted = Pawl({"submit", "transpose", "--iterations", "3"}, Certificate("submit"));
  ASSERT_TRUE(submitted.ok()) << submitted.err;
  EXPECT_EQ(submitted.out, "campaigns/1\n");
  const ProcessResult watched = Pawl({"watch", "1"}, Certificate("read"));
  EXPECT_FALSE(watched.timed_out) << watched.err;
  const ProcessResult listed = Pawl({"campaigns", "--json"}, {"--tls-ca", File("certificates/ca.crt"), "--token-file",
                                                              Secret("token", "0123456789abcdef\n")});
  EXPECT_THAT(listed.out, HasSubstr("\"campaigns/1\"")) << listed.err;
}

TEST_F(TlsTest, TellsThoseWhomItRefusesWhy) {
  const auto refused = [this](const Words& words, const Words& credentials, const std::string& why) {
    const ProcessResult result = Pawl(words, credentials);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"cancel", "1"}, Certificate("read"), "this call needs the role submit");
  refused({"campaigns"}, Certificate("work"), "this call needs the role read");
  refused({"campaigns"}, {"--tls-ca", File("certificates/ca.crt")}, "no credentials: this call needs the role read");
  refused({"campaigns"}, {"--tls-ca", "/no/such/file"}, "/no/such/file, can't be read");
  refused({"campaigns"},
          {"--tls-ca", File("certificates/ca.crt"), "--token-file", Secret("other", "fedcba9876543210\n")},
          "unknown token: this call needs the role read");
  refused({"campaigns"},
          {"--tls-ca", File("certificates/ca.crt"), "--tls-cert", File("certificates/read.crt"), "--tls-key",
           File("certificates/submit.key")},
          "does not belong to the certificate");
  Words arguments = {absl::StrCat(getenv("PAWL_BIN_DIR"), "/pawl-worker"), "--orchestrator", address_, "--device",
                     "replay"};
  Add(Certificate("submit"), &arguments);
  const ProcessResult worker = Run(arguments);
  EXPECT_EQ(worker.exit_code, 1);
  EXPECT_THAT(worker.err, HasSubstr("this call needs the role work"));
  EXPECT_THAT(Run({absl::StrCat(getenv("PAWL_BIN_DIR"), "/pawl"), "campaigns", "--orchestrator", "gpu-head:7465"}).err,
              HasSubstr("needs TLS"));
}

TEST_F(TlsTest, SaysInOneLineThatACertificateIsNotTrusted) {
  ASSERT_TRUE(Run({absl::StrCat(getenv("PAWL_SOURCE_DIR"), "/scripts/make-certificates"), File("others")}).ok());
  const ProcessResult result = Pawl({"campaigns"}, {"--tls-ca", File("others/ca.crt")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            absl::StrCat("pawl campaigns: TLS with the orchestrator at ", address_,
                         " failed: its certificate is not signed by the authority of --tls-ca, or has expired\n"
                         "  fix: name the authority that signed it with --tls-ca\n"));
}

TEST_F(TlsTest, SaysInOneLineThatThePortIsTaken) {
  Words second = {absl::StrCat(getenv("PAWL_BIN_DIR"), "/pawl-orchestrator"), "--listen", address_, "--database",
                  File("second.db")};
  Add(Certificate("orchestrator"), &second);
  const ProcessResult result = Run(second);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, absl::StrCat("pawl-orchestrator: can't listen on ", address_,
                                     ": another process uses this port; stop it, or name another port with "
                                     "--listen\n"));
}

}  // namespace
}  // namespace pawl
