#include <random>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/requests.h"
#include "cli/connect/settings.h"

namespace pawl {
namespace {

constexpr absl::Duration kSubmitPatience = absl::Minutes(2);  // a database that was not closed is checked first
constexpr absl::Duration kPause = absl::Milliseconds(300);

std::string RandomId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&id, "%08x", random());
  return id;
}

}  // namespace

absl::StatusOr<v1::Campaign> SubmitBundle(Connection& connection, const v1::Bundle& bundle,
                                          const v1::CampaignSpec& spec, Need reconnect,
                                          const std::function<void(const std::string&)>& say) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = bundle;
  *request.mutable_spec() = spec;
  request.set_request_id(RandomId());
  request.set_author(Author());
  const SteadyTime deadline = SteadyNow() + kSubmitPatience;
  bool told = false;
  while (true) {
    absl::StatusOr<v1::Campaign> campaign = connection.client().Submit(request);
    if (!absl::IsUnavailable(campaign.status()) || SteadyNow() >= deadline || Interrupted()) return campaign;
    if (!told)
      say(absl::StrFormat("%s; retrying for %d s", std::string(campaign.status().message()),
                          absl::ToInt64Seconds(kSubmitPatience)));
    told = true;
    absl::SleepFor(kPause);
    // Where it is nowhere yet, the old address is as good as any.
    connection.Reopen(reconnect).IgnoreError();
  }
}

}  // namespace pawl
