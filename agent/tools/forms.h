// How campaigns, iterations and findings look in the results of tools: short, in the words of `pawl --json`, without
// what is not known.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

#include "agent/mcp/json.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// No result has more characters: 20,000 tokens at two characters each.
inline constexpr size_t kMostResult = 40'000;

// Four figures.
Json Rounded(double value);
// Adds the field where there is something to say: a text that is not empty (cut where it is long), a number that is
// not 0.
void AddText(const char* key, const std::string& text, Json* object);
void AddNumber(const char* key, double value, Json* object);

Json CampaignForm(const v1::Campaign& campaign);
Json IterationForm(const v1::Iteration& iteration);
Json FindingForm(const v1::Finding& finding);
Json RankedForm(const v1::RankedChange& ranked, int best);
// Of the launch that takes the longest; null: there is no evidence.
const v1::LaunchEvidence* LongestOf(const v1::Evidence& evidence);

// "q: f16 [B, H, S, D], input".
std::string TensorLine(const v1::Tensor& tensor);
std::string LaunchLine(const v1::Launch& launch);

// Shortens these lists, from their ends, the longest first, until the result has no more than so many characters; says
// in `leftOut` how many elements each lost.
void FitResult(std::initializer_list<const char*> lists, size_t characters, Json* result);

}  // namespace pawl
