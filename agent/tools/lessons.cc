#include "agent/tools/lessons.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/tools/forms.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kMostCampaigns = 1000;
constexpr int kPage = 1000;

size_t LengthOfCharacter(unsigned char first) { return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4; }

// Letters and digits, of any language: what is no ASCII, without the punctuation, arrows and symbols of UTF-8
// (U+0080 to U+00BF, multiplication and division, U+2000 to U+2BFF, U+3000 to U+303F).
bool IsOfWord(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (byte(0) < 0x80) return absl::ascii_isalnum(byte(0));
  if (character.size() < 2 || byte(0) == 0xc2) return false;
  if (byte(0) == 0xc3) return byte(1) != 0x97 && byte(1) != 0xb7;
  return !(byte(0) == 0xe2 && byte(1) < 0xb0) && !(byte(0) == 0xe3 && byte(1) == 0x80);
}

// Words without their case (of ASCII letters) and their plural.
std::vector<std::string> WordsIn(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  const std::string whole = text + " ";
  for (size_t at = 0, length = 0; at < whole.size(); at += length) {
    length = std::min(LengthOfCharacter(static_cast<unsigned char>(whole[at])), whole.size() - at);
    const std::string_view character(whole.data() + at, length);
    if (IsOfWord(character)) {
      word += absl::AsciiStrToLower(std::string(character));
      continue;
    }
    if (word.size() > 3 && word.back() == 's') word.pop_back();
    if (!word.empty()) words.push_back(word);
    word.clear();
  }
  return words;
}

std::string TextOf(const Lesson& lesson) {
  return absl::StrCat(lesson.bundle, " ", lesson.change, " ", lesson.rule, " ", lesson.finding, " ", lesson.effect, " ",
                      lesson.verdict, " ", lesson.reason, " ", lesson.author, " ", lesson.why);
}

// A word of the query may be the beginning of one of the lesson.
bool HasWords(const Lesson& lesson, const std::vector<std::vector<std::string>>& any_of) {
  if (any_of.empty()) return true;
  const std::vector<std::string> words = WordsIn(TextOf(lesson));
  const auto has = [&](const std::string& wanted) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return absl::StartsWith(word, wanted); });
  };
  return std::any_of(any_of.begin(), any_of.end(),
                     [&](const auto& all) { return !all.empty() && std::all_of(all.begin(), all.end(), has); });
}

Lesson LessonOf(const v1::Campaign& campaign, const v1::Iteration& iteration) {
  Lesson lesson;
  lesson.campaign = campaign.name();
  lesson.bundle = campaign.bundle();
  lesson.device = campaign.device();
  lesson.iteration = iteration.number();
  lesson.change = ChangeText(iteration.change());
  lesson.edit = iteration.change().has_source();
  lesson.rule = iteration.finding().rule();
  lesson.finding = iteration.finding().text();
  if (iteration.has_effect()) lesson.effect = EffectText(iteration.effect());
  lesson.verdict = VerdictWord(iteration.verdict());
  lesson.speedup = iteration.speedup_over_parent();
  lesson.reason = iteration.reason();
  lesson.author = iteration.author();
  lesson.why = iteration.why();
  return lesson;
}

// Edits teach what no variable shows; of each kind the largest gain first, and failures with a time before others.
bool Before(const Lesson& a, const Lesson& b) {
  if (a.edit != b.edit) return a.edit;
  return a.speedup > b.speedup;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LessonBook::Page>> LessonBook::PageOf(Campaigns& campaigns,
                                                                           const v1::Campaign& campaign) {
  {
    absl::MutexLock lock(&mutex_);
    const auto known = pages_.find(campaign.name());
    if (known != pages_.end() && known->second->sequence == campaign.last_sequence()) return known->second;
  }
  auto page = std::make_shared<Page>();
  page->sequence = campaign.last_sequence();
  v1::ListIterationsRequest request;
  request.set_campaign(campaign.name());
  request.set_page_size(kPage);
  do {
    absl::StatusOr<v1::ListIterationsResponse> list = campaigns.ListIterations(request);
    if (!list.ok()) return list.status();
    for (const v1::Iteration& iteration : list->iterations()) {
      const bool judged = iteration.verdict() != v1::VERDICT_UNSPECIFIED && !iteration.untried();
      if (iteration.number() > 0 && judged) page->lessons.push_back(LessonOf(campaign, iteration));
    }
    request.set_page_token(list->next_page_token());
  } while (!request.page_token().empty());
  absl::MutexLock lock(&mutex_);
  pages_[campaign.name()] = page;
  return page;
}

absl::StatusOr<LessonAnswer> LessonBook::Find(Campaigns& campaigns, const LessonQuery& query) {
  std::vector<std::vector<std::string>> wanted;
  for (const std::string& text : query.any_of) wanted.push_back(WordsIn(text));
  const std::string gpu = absl::AsciiStrToLower(query.gpu);
  LessonAnswer answer;
  v1::ListCampaignsRequest request;
  request.set_page_size(kPage);
  absl::StatusOr<v1::ListCampaignsResponse> list = campaigns.ListCampaigns(request);
  if (!list.ok()) return list.status();
  answer.older_left_out = !list->next_page_token().empty();
  for (const v1::Campaign& campaign : list->campaigns()) {
    const std::string& on = campaign.gpu().empty() ? campaign.device() : campaign.gpu();
    const bool on_gpu = absl::StrContains(absl::AsciiStrToLower(on), gpu);
    if (!on_gpu || campaign.name() == query.not_of || campaign.counts().tried() == 0) continue;
    absl::StatusOr<std::shared_ptr<const Page>> page = PageOf(campaigns, campaign);
    if (absl::IsNotFound(page.status())) continue;  // it was removed meanwhile
    if (!page.ok()) return page.status();
    for (const Lesson& lesson : (*page)->lessons) {
      if ((lesson.edit || !query.edits_only) && HasWords(lesson, wanted)) answer.lessons.push_back(lesson);
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    if (pages_.size() > 2 * kMostCampaigns) pages_.clear();
  }
  answer.found = answer.lessons.size();
  std::stable_sort(answer.lessons.begin(), answer.lessons.end(), Before);
  if (answer.lessons.size() > query.most) answer.lessons.resize(query.most);
  return answer;
}

Json LessonForm(const Lesson& lesson) {
  Json form = {{"campaign", lesson.campaign}, {"iteration", lesson.iteration}, {"bundle", lesson.bundle}};
  AddText("device", lesson.device, &form);
  form["change"] = lesson.change;
  form["verdict"] = lesson.verdict;
  AddNumber("speedupOverParent", lesson.speedup, &form);
  AddText("finding", lesson.rule, &form);
  AddText("effect", lesson.effect, &form);
  AddText("reason", lesson.reason, &form);
  AddText("author", lesson.author, &form);
  AddText("why", lesson.why, &form);
  return form;
}

}  // namespace pawl
