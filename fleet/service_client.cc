#include "fleet/service_client.h"

#include <httplib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/channel/tls_files.h"
#include "fleet/demand.h"

namespace pawl {
namespace {

absl::StatusOr<std::string> Fetch(httplib::Client& client, const httplib::Headers& headers,
                                  const ServiceAddress& address, const std::string& path) {
  const httplib::Result reply = client.Get(path, headers);
  if (!reply && reply.error() == httplib::Error::SSLServerVerification) {
    return absl::UnavailableError(absl::StrCat("the certificate of ", address.url,
                                               " is not trusted: name the authority that signed it with --tls-ca"));
  }
  if (!reply) {
    return absl::UnavailableError(absl::StrCat("the orchestrator does not answer at ", address.url, " (",
                                               httplib::to_string(reply.error()),
                                               "): is it running, with --http? Is this its dashboard's address "
                                               "(--http here)?"));
  }
  if (reply->status == 401 || reply->status == 403) {
    return absl::UnauthenticatedError(
        absl::StrCat(address.url, " refuses to answer: --token-file must hold a token of the role read"));
  }
  if (reply->status != 200) {
    return absl::UnavailableError(absl::StrCat(address.url, path, " answers with status ", reply->status));
  }
  return reply->body;
}

// What the paths answer, in their order.
absl::StatusOr<std::vector<std::string>> FetchAll(const ServiceAddress& address,
                                                  const std::vector<std::string>& paths) {
  httplib::Client client(address.url);
  if (!client.is_valid())
    return absl::InvalidArgumentError(absl::StrCat(address.url, " is not the URL of a dashboard"));
  const auto deadline = absl::ToChronoMilliseconds(address.deadline);
  client.set_connection_timeout(deadline);
  client.set_read_timeout(deadline);
  client.set_write_timeout(deadline);
  if (!address.ca.empty()) client.set_ca_cert_path(address.ca);
  httplib::Headers headers;
  if (!address.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadSecretFile(address.token_file, "the token of --token-file");
    if (!token.ok()) return token.status();
    headers.emplace("Authorization", absl::StrCat("Bearer ", absl::StripAsciiWhitespace(*token)));
  }
  std::vector<std::string> answers;
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> answer = Fetch(client, headers, address, path);
    if (!answer.ok()) return answer.status();
    answers.push_back(*std::move(answer));
  }
  return answers;
}

}  // namespace

absl::StatusOr<Demand> AskService(const ServiceAddress& address) {
  const absl::StatusOr<std::vector<std::string>> answers = FetchAll(address, {"/metrics", "/api/workers"});
  if (!answers.ok()) return answers.status();
  return ReadDemand((*answers)[0], (*answers)[1]);
}

absl::StatusOr<std::vector<std::string>> AskForAllWorkers(const ServiceAddress& address) {
  const absl::StatusOr<std::vector<std::string>> answers = FetchAll(address, {"/api/workers?gone_too=true"});
  if (!answers.ok()) return answers.status();
  return ReadWorkerNames((*answers)[0]);
}

}  // namespace pawl
