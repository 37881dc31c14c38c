#pragma once

#include <string>

#include "grpcpp/security/auth_metadata_processor.h"
#include "orchestrator/security/access.h"

namespace pawl {

// Stands before every call, before its message is read: refuses callers without the role, and calls without a deadline.
// A status's details do not travel from here, so that its message says what to do.
class CallGate final : public grpc::AuthMetadataProcessor {
 public:
  explicit CallGate(Access access) : access_(std::move(access)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                       OutputMetadata* response) override;

 private:
  const Access access_;
};

}  // namespace pawl
