#include "orchestrator/security/call_gate.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc_security_constants.h"
#include "orchestrator/security/rpc_roles.h"

namespace pawl {
namespace {

using Metadata = grpc::AuthMetadataProcessor::InputMetadata;

std::string Find(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

Caller WhoCalls(const Metadata& metadata, const grpc::AuthContext& context) {
  Caller caller;
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    caller.certificate_uris.emplace_back(uri.data(), uri.size());
  }
  const std::string header = Find(metadata, "authorization");
  constexpr absl::string_view kScheme = "Bearer ";
  if (absl::StartsWithIgnoreCase(header, kScheme)) {
    caller.token = std::string(absl::StripAsciiWhitespace(absl::string_view(header).substr(kScheme.size())));
  }
  return caller;
}

}  // namespace

grpc::Status CallGate::Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                               OutputMetadata*) {
  const std::string path = Find(metadata, ":path");
  // Whether it serves is no secret, and load balancers ask without a name.
  if (absl::StartsWith(path, "/grpc.health.v1.Health/")) return grpc::Status::OK;
  const std::optional<RpcRule> rule = RuleOfRpc(path);
  if (!rule) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("unknown method ", path));
  const absl::Status allowed = access_.Check(WhoCalls(metadata, *context), rule->role);
  if (!allowed.ok()) {
    return grpc::Status(static_cast<grpc::StatusCode>(allowed.code()), std::string(allowed.message()));
  }
  if (rule->needs_deadline && metadata.find("grpc-timeout") == metadata.end()) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        absl::StrCat(path, " needs a deadline: set one in the client, usually 10 to 30 seconds"));
  }
  // No handler has a use for the token, and what is not handed on can't be logged.
  for (auto [at, end] = metadata.equal_range("authorization"); at != end; ++at) {
    consumed->insert({"authorization", std::string(at->second.data(), at->second.size())});
  }
  return grpc::Status::OK;
}

}  // namespace pawl
