#include "db/pattern_rows.h"

namespace pawl {

absl::Status WriteLesson(SqliteConnection* writer, const v1::Pattern& lesson) {
  return writer
      ->Use(
          "INSERT INTO pattern_counts (bundle, rule, architecture, resource, direction, gain, tried, kept, timed,"
          " predictions, came_true) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
          " ON CONFLICT (bundle, rule, architecture, resource, direction, gain) DO UPDATE SET"
          " tried = tried + excluded.tried, kept = kept + excluded.kept, timed = timed + excluded.timed,"
          " predictions = predictions + excluded.predictions, came_true = came_true + excluded.came_true")
      .BindText(lesson.bundle())
      .BindText(lesson.rule())
      .BindText(lesson.architecture())
      .Bind(int64_t{lesson.effect().resource()})
      .Bind(int64_t{lesson.effect().direction()})
      .Bind(lesson.median_gain())
      .Bind(int64_t{lesson.tried()})
      .Bind(int64_t{lesson.kept()})
      .Bind(int64_t{lesson.timed()})
      .Bind(int64_t{lesson.predictions()})
      .Bind(int64_t{lesson.came_true()})
      .Run();
}

absl::StatusOr<std::vector<v1::Pattern>> ReadLessons(SqliteConnection* reader) {
  Statement statement = reader->Use(
      "SELECT bundle, rule, architecture, resource, direction, gain, tried, kept, timed, predictions, came_true"
      " FROM pattern_counts ORDER BY bundle, rule, architecture, resource, direction, gain");
  std::vector<v1::Pattern> lessons;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return lessons;
    v1::Pattern& lesson = lessons.emplace_back();
    const auto whole = [&](int column) { return static_cast<int32_t>(statement.Int(column)); };
    lesson.set_bundle(std::string(statement.Bytes(0)));
    lesson.set_rule(std::string(statement.Bytes(1)));
    lesson.set_architecture(std::string(statement.Bytes(2)));
    lesson.mutable_effect()->set_resource(static_cast<v1::Resource>(whole(3)));
    lesson.mutable_effect()->set_direction(static_cast<v1::Direction>(whole(4)));
    lesson.set_median_gain(statement.Real(5));
    lesson.set_tried(whole(6));
    lesson.set_kept(whole(7));
    lesson.set_timed(whole(8));
    lesson.set_predictions(whole(9));
    lesson.set_came_true(whole(10));
  }
}

absl::Status WritePatternFile(SqliteConnection* writer, const v1::PatternFile& file) {
  const std::string content = file.SerializeAsString();
  return writer
      ->Use(
          "INSERT INTO pattern_files (source, content) VALUES (?, ?) ON CONFLICT (source) DO UPDATE SET"
          " content = excluded.content")
      .BindText(file.source())
      .BindBytes(content)
      .Run();
}

absl::Status WritePatternExport(SqliteConnection* writer, const std::string& hash) {
  return writer->Use("INSERT OR IGNORE INTO pattern_exports (hash) VALUES (?)").BindText(hash).Run();
}

absl::StatusOr<std::vector<std::string>> ReadPatternExports(SqliteConnection* reader) {
  Statement statement = reader->Use("SELECT hash FROM pattern_exports ORDER BY hash");
  std::vector<std::string> hashes;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return hashes;
    hashes.emplace_back(statement.Bytes(0));
  }
}

}  // namespace pawl
