#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "agent/campaigns/campaigns.h"
#include "agent/mcp/json.h"

namespace pawl {

// What one iteration of a stored campaign taught: a change or an edit, what it was for, and what came of it.
struct Lesson {
  std::string campaign;  // campaigns/7
  std::string bundle;
  std::string device;
  int iteration = 0;
  std::string change;  // "TILE_M 64→16", "edit unroll-inner"
  bool edit = false;
  std::string rule;     // of the finding that it served; empty: none was recorded
  std::string finding;  // in words
  std::string effect;   // "parallelism+"
  std::string verdict;  // kept, reverted, rejected
  double speedup = 0;   // over the parent; 0: not compared
  std::string reason;
  std::string author;
  std::string why;
};

struct LessonQuery {
  // Every word of one of these must be in the lesson, in the singular or plural: "bank conflicts". None: any lesson. A
  // text without a word, such as "?!", is in no lesson.
  std::vector<std::string> any_of;
  std::string gpu;          // part of the device's name; empty: any
  std::string not_of = {};  // a campaign whose lessons are left out
  bool edits_only = false;
  size_t most = 50;
};

struct LessonAnswer {
  std::vector<Lesson> lessons;  // edits first, then what gained the most; of equal ones the newest campaign's
  size_t found = 0;             // with those beyond `most`
  bool older_left_out = false;  // there are more campaigns than are looked through
};

// The lessons of the newest campaigns. What it read of a campaign that has not changed since is not asked for again.
// Thread-safe.
class LessonBook {
 public:
  absl::StatusOr<LessonAnswer> Find(Campaigns& campaigns, const LessonQuery& query);

 private:
  struct Page {
    int64_t sequence = 0;  // of the campaign, when it was read
    std::vector<Lesson> lessons;
  };
  absl::StatusOr<std::shared_ptr<const Page>> PageOf(Campaigns& campaigns, const v1::Campaign& campaign);

  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Page>> pages_ ABSL_GUARDED_BY(mutex_);  // by campaign
};

Json LessonForm(const Lesson& lesson);

}  // namespace pawl
