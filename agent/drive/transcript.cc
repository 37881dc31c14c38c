#include "agent/drive/transcript.h"

#include <algorithm>

namespace pawl {

Transcript::Transcript(const std::filesystem::path& file, size_t most) : most_(most) {
  if (!file.empty()) out_.open(file, std::ios::binary);
}

void Transcript::Add(std::string_view text) {
  const size_t kept = std::min(text.size(), most_ - written_);
  out_.write(text.data(), static_cast<std::streamsize>(kept));
  written_ += kept;
  if (kept < text.size() && !cut_) {
    cut_ = true;
    out_ << "\n[the rest is not kept: more than " << (most_ >> 20) << " MiB]\n";
  }
  out_.flush();
}

void Transcript::AddLine(std::string_view line) {
  if (cut_) return;
  cut_ = line.size() + 1 > most_ - written_;
  if (cut_) {
    out_ << "{\"cut\":\"the rest is not kept: more than " << (most_ >> 20) << " MiB\"}\n" << std::flush;
    return;
  }
  out_ << line << '\n' << std::flush;
  written_ += line.size() + 1;
}

}  // namespace pawl
