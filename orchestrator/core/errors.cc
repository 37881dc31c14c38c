#include "orchestrator/core/errors.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/messages/finite.h"
#include "base/names/utf8.h"

namespace pawl {
namespace {

constexpr char kPayload[] = "pawl.v1.ErrorDetail";

// A status travels in headers, of which gRPC's clients take 8 KB: more, and they see that error instead.
constexpr size_t kMaxErrorBytes = 1000;
constexpr size_t kMaxField = 200;
constexpr size_t kMaxProblems = 1500;  // all together

v1::ErrorDetail Fitting(const v1::ErrorDetail& detail) {
  v1::ErrorDetail fitting;  // what it quotes may have been cut in the middle of a character
  fitting.set_field(Shortened(ValidUtf8(detail.field()), kMaxField));
  fitting.set_resource(Shortened(ValidUtf8(detail.resource()), kMaxField));
  fitting.set_fix(Shortened(ValidUtf8(detail.fix()), kMaxField));
  fitting.set_retry_after_seconds(detail.retry_after_seconds());
  size_t bytes = 0;
  for (const std::string& problem : detail.problems()) {
    bytes += problem.size();
    if (bytes > kMaxProblems && fitting.problems_size() > 0) {
      fitting.add_problems(absl::StrCat("and ", detail.problems_size() - fitting.problems_size(), " more"));
      break;
    }
    fitting.add_problems(Shortened(ValidUtf8(problem), kMaxProblems));
  }
  return fitting;
}

}  // namespace

absl::Status Error(absl::StatusCode code, const std::string& message, const v1::ErrorDetail& detail) {
  absl::Status status(code, Shortened(message, kMaxErrorBytes));
  status.SetPayload(kPayload, absl::Cord(Fitting(detail).SerializeAsString()));
  return status;
}

absl::Status BadField(const std::string& field, const std::string& message) {
  v1::ErrorDetail detail;
  detail.set_field(field);
  detail.set_fix(absl::StrCat("correct ", field, " and send the request again"));
  return Error(absl::StatusCode::kInvalidArgument, absl::StrCat(field, ": ", message), detail);
}

absl::Status CheckText(const std::string& field, const std::string& text) {
  if (text.size() > kMaxText) return BadField(field, "expected at most 1000 characters");
  return absl::OkStatus();
}

absl::Status CheckFinite(const google::protobuf::Message& request) {
  const std::optional<std::string> field = FirstNonFinite(request);
  return field ? BadField(*field, "expected a finite number") : absl::OkStatus();
}

absl::Status NoSuch(const std::string& resource, const std::string& fix) {
  v1::ErrorDetail detail;
  detail.set_resource(resource);
  detail.set_fix(fix);
  return Error(absl::StatusCode::kNotFound, absl::StrCat("there is no ", resource), detail);
}

absl::Status TryLater(const std::string& message, double seconds) {
  v1::ErrorDetail detail;
  detail.set_retry_after_seconds(seconds);
  detail.set_fix("try again later");
  return Error(absl::StatusCode::kUnavailable, message, detail);
}

std::string DetailsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace pawl
