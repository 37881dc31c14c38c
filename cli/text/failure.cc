#include "cli/text/failure.h"

#include <cstdio>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace pawl {

namespace {

constexpr char kDetail[] = "type.googleapis.com/pawl.v1.ErrorDetail";

}  // namespace

absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail) {
  status.SetPayload(kDetail, absl::Cord(detail.SerializeAsString()));
  return status;
}

v1::ErrorDetail DetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetail);
  if (payload && !detail.ParseFromString(std::string(*payload))) detail.Clear();
  return detail;
}

std::string FailureText(const absl::Status& status) {
  const v1::ErrorDetail detail = DetailOf(status);
  std::string text(status.message());
  if (text.empty()) text = absl::StrCat("failed: ", absl::StatusCodeToString(status.code()));
  for (const std::string& problem : detail.problems()) absl::StrAppend(&text, "\n  ", problem);
  if (!detail.fix().empty()) absl::StrAppend(&text, "\n  fix: ", detail.fix());
  return text;
}

int Fail(const std::string& command, const absl::Status& status) {
  std::fflush(stdout);
  std::fprintf(stderr, "pawl %s: %s\n", command.c_str(), FailureText(status).c_str());
  return kFailed;
}

}  // namespace pawl
