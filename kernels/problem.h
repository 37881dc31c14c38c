#pragma once

#include <string>
#include <vector>

namespace pawl {

// A mistake in what a user wrote, and where.
struct Problem {
  std::string file;
  int line = 0;  // 0: the file as a whole
  std::string message;
};

// file:line: message
std::string FormatProblem(const Problem& problem);

// Collects the problems of one file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void Add(int line, std::string message) { AddTo(file_, line, std::move(message)); }
  void AddTo(std::string file, int line, std::string message) {
    list_.push_back({std::move(file), line, std::move(message)});
  }
  bool empty() const { return list_.empty(); }

  // By line, each once.
  std::vector<Problem> Sorted() const;

 private:
  std::string file_;
  std::vector<Problem> list_;
};

}  // namespace pawl
