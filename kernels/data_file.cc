#include "kernels/data_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names/utf8.h"
#include "kernels/data_type.h"
#include "kernels/limits.h"

namespace pawl {
namespace {

// An array in a file.
struct FoundArray {
  std::string type;  // in the file's words
  std::vector<int64_t> shape;
  absl::string_view data;
};

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

template <typename T>
std::optional<T> LittleEndian(absl::string_view bytes, size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The text behind 'key': in a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
absl::string_view HeaderValue(absl::string_view header, const std::string& key) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == header.npos) return "";
  return absl::StripLeadingAsciiWhitespace(header.substr(at + key.size() + 3));
}

absl::StatusOr<FoundArray> ReadNpy(absl::string_view bytes) {
  constexpr absl::string_view kMagic = "\x93NUMPY";
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < 12) {
    return absl::InvalidArgumentError("it is not an .npy file; expected what numpy.save writes");
  }
  const bool long_header = bytes[6] >= 2;
  const size_t begin = long_header ? 12 : 10;
  const uint32_t length = long_header ? *LittleEndian<uint32_t>(bytes, 8) : *LittleEndian<uint16_t>(bytes, 8);
  if (bytes.size() - begin < length) return absl::InvalidArgumentError("its header is cut off");
  const absl::string_view header = bytes.substr(begin, length);
  FoundArray array;
  const absl::string_view type = HeaderValue(header, "descr");
  if (!absl::StartsWith(type, "'") || type.find('\'', 1) == type.npos) {
    return absl::InvalidArgumentError("its elements are of several types; expected one number each");
  }
  array.type = Printable(std::string(type.substr(1, type.find('\'', 1) - 1)));
  if (!absl::StartsWith(HeaderValue(header, "fortran_order"), "False")) {
    return absl::InvalidArgumentError("its order is Fortran's; expected C's: numpy.ascontiguousarray makes it so");
  }
  absl::string_view shape = HeaderValue(header, "shape");
  if (!absl::StartsWith(shape, "(") || shape.find(')') == shape.npos) {
    return absl::InvalidArgumentError("its header has no shape");
  }
  for (absl::string_view part : absl::StrSplit(shape.substr(1, shape.find(')') - 1), ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 0 || array.shape.size() == kMaxRank) {
      return absl::InvalidArgumentError("its shape can't be read");
    }
    array.shape.push_back(extent);
  }
  array.data = bytes.substr(begin + length);
  return array;
}

absl::StatusOr<FoundArray> ReadSafetensors(absl::string_view bytes, const std::string& name) {
  const std::optional<uint64_t> length = LittleEndian<uint64_t>(bytes, 0);
  if (!length || *length > bytes.size() - 8) {
    return absl::InvalidArgumentError("it is not a .safetensors file, or it is cut off");
  }
  const absl::string_view described = bytes.substr(8, *length);
  const nlohmann::json header =
      nlohmann::json::parse(described.begin(), described.end(), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return absl::InvalidArgumentError("its header is not JSON; expected a .safetensors file");
  std::vector<std::string> names;
  for (const auto& [key, value] : header.items()) {
    if (key != "__metadata__") names.push_back(key);
  }
  const std::string chosen = names.size() == 1 ? names[0] : name;
  const auto found = header.find(chosen);
  if (found == header.end() || chosen == "__metadata__") {
    return absl::InvalidArgumentError(
        absl::StrCat("it has no tensor ", name, "; it has ", Printable(absl::StrJoin(names, ", ").substr(0, 400))));
  }
  const auto type = found->find("dtype"), shape = found->find("shape"), offsets = found->find("data_offsets");
  if (!found->is_object() || type == found->end() || shape == found->end() || offsets == found->end() ||
      !type->is_string() || !shape->is_array() || shape->size() > kMaxRank || !offsets->is_array() ||
      offsets->size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("its header does not describe ", chosen));
  }
  FoundArray array{Printable(type->get<std::string>()), {}, ""};
  for (const nlohmann::json& extent : *shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > static_cast<uint64_t>(kMaxElements)) {
      return absl::InvalidArgumentError("its shape can't be read");
    }
    array.shape.push_back(extent.get<int64_t>());
  }
  const absl::string_view data = bytes.substr(8 + *length);
  if (!(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned()) {
    return absl::InvalidArgumentError("its offsets can't be read");
  }
  const auto begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > data.size()) return absl::InvalidArgumentError("it is cut off");
  array.data = data.substr(begin, end - begin);
  return array;
}

// What the file may call a type. NumPy has no bf16, fp8 and 4-bit types.
bool IsTypeName(const std::string& found, v1::DataType type, bool npy) {
  static const auto& names = *new std::map<v1::DataType, std::pair<std::vector<std::string>, std::vector<std::string>>>{
      {v1::DATA_TYPE_F16, {{"<f2"}, {"F16"}}},
      {v1::DATA_TYPE_BF16, {{"<u2", "<V2", "|V2"}, {"BF16"}}},
      {v1::DATA_TYPE_F32, {{"<f4"}, {"F32"}}},
      {v1::DATA_TYPE_F64, {{"<f8"}, {"F64"}}},
      {v1::DATA_TYPE_I32, {{"<i4"}, {"I32"}}},
      {v1::DATA_TYPE_F8E4M3, {{"|u1", "<V1", "|V1"}, {"F8_E4M3"}}},
      {v1::DATA_TYPE_F8E5M2, {{"|u1", "<V1", "|V1"}, {"F8_E5M2"}}},
      {v1::DATA_TYPE_I8, {{"|i1"}, {"I8"}}},
      {v1::DATA_TYPE_U8, {{"|u1"}, {"U8"}}},
      {v1::DATA_TYPE_I16, {{"<i2"}, {"I16"}}},
      {v1::DATA_TYPE_U16, {{"<u2"}, {"U16"}}},
      {v1::DATA_TYPE_U32, {{"<u4"}, {"U32"}}},
      {v1::DATA_TYPE_I64, {{"<i8"}, {"I64"}}},
      {v1::DATA_TYPE_U64, {{"<u8"}, {"U64"}}},
      {v1::DATA_TYPE_BOOL, {{"|b1"}, {"BOOL"}}},
      {v1::DATA_TYPE_I4, {{"|u1", "|i1"}, {"U8", "I8"}}},
      {v1::DATA_TYPE_U4, {{"|u1", "|i1"}, {"U8", "I8"}}}};
  const auto it = names.find(type);
  if (it == names.end()) return false;
  const std::vector<std::string>& known = npy ? it->second.first : it->second.second;
  return std::find(known.begin(), known.end(), found) != known.end();
}

std::vector<int64_t> StoredShape(const v1::PlanTensor& tensor) {
  std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (!shape.empty() && ElementBits(tensor.type()) == 4) shape.back() /= 2;
  return shape;
}

absl::Status CheckArray(const FoundArray& array, const v1::PlanTensor& tensor, bool npy) {
  const std::vector<int64_t> expected = StoredShape(tensor);
  if (!IsTypeName(array.type, tensor.type(), npy)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its elements are ", array.type, "; expected ", DataTypeName(tensor.type())));
  }
  bool fits = array.shape.size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i) {
    fits = i == 0 ? array.shape[i] >= expected[i] : array.shape[i] == expected[i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("its shape is ", ShapeText(array.shape), "; expected ",
                                                 ShapeText(expected), ", or more rows than that"));
}

absl::StatusOr<absl::string_view> FirstBytes(absl::string_view data, int64_t bytes) {
  if (static_cast<int64_t>(data.size()) < bytes) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", data.size(), " bytes of data; expected ", bytes));
  }
  return data.substr(0, static_cast<size_t>(bytes));
}

absl::StatusOr<absl::string_view> ReadData(const v1::DataFile& file, const v1::PlanTensor& tensor) {
  if (IsRawData(file.path())) return FirstBytes(file.data(), TensorBytes(tensor));
  const bool npy = absl::EndsWith(file.path(), ".npy");
  absl::StatusOr<FoundArray> array = npy ? ReadNpy(file.data()) : ReadSafetensors(file.data(), tensor.name());
  if (!array.ok()) return array.status();
  if (absl::Status status = CheckArray(*array, tensor, npy); !status.ok()) return status;
  return FirstBytes(array->data, TensorBytes(tensor));
}

// The numbers of a tensor.
struct Elements {
  const v1::PlanTensor& tensor;
  absl::string_view data;

  double operator[](int64_t i) const {
    if (ElementBits(tensor.type()) != 4) {
      return DecodedScalar(tensor.type(), data.data() + i * ElementBytes(tensor.type()));
    }
    const int nibble = static_cast<unsigned char>(data[static_cast<size_t>(i / 2)]) >> (i % 2 * 4) & 15;
    return tensor.type() == v1::DATA_TYPE_I4 && nibble > 7 ? nibble - 16 : nibble;
  }
};

std::string NumberText(double number) {
  return number == std::floor(number) && std::fabs(number) < 0x1p63 ? absl::StrCat(static_cast<int64_t>(number))
                                                                    : absl::StrCat(number);
}

absl::Status CheckRange(const Elements& elements) {
  const v1::PlanTensor& tensor = elements.tensor;
  if (!tensor.has_low() || !tensor.has_high()) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double found = elements[i];
    if (found >= tensor.low() && found <= tensor.high()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("element ", i, " is ", found, "; the range is ", tensor.low(), " to ", tensor.high()));
  }
  return absl::OkStatus();
}

absl::Status CheckRises(const Elements& elements, const std::string& what) {
  for (int64_t i = 1; i < elements.tensor.elements(); ++i) {
    if (elements[i] >= elements[i - 1]) continue;
    return absl::InvalidArgumentError(absl::StrCat("it falls from ", NumberText(elements[i - 1]), " to ",
                                                   NumberText(elements[i]), " at element ", i, ": ", what,
                                                   " must not fall"));
  }
  return absl::OkStatus();
}

absl::Status CheckOffsets(const Elements& elements) {
  const v1::PlanTensor& tensor = elements.tensor;
  if (elements[0] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("element 0 is ", NumberText(elements[0]), "; CSR offsets begin with 0"));
  }
  if (absl::Status status = CheckRises(elements, "CSR offsets"); !status.ok()) return status;
  const int64_t last = tensor.elements() - 1;
  if (elements[last] == tensor.high()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("element ", last, ", the last, is ", NumberText(elements[last]),
                                                 "; CSR offsets end with the number of non-zeros, ",
                                                 NumberText(tensor.high())));
}

absl::Status CheckPermutation(const Elements& elements) {
  const int64_t count = elements.tensor.elements();
  std::vector<int64_t> place(static_cast<size_t>(count), -1);
  const std::string expected = absl::StrCat("; expected a permutation of 0 to ", count - 1);
  for (int64_t i = 0; i < count; ++i) {
    const double found = elements[i];
    if (!(found >= 0 && found < static_cast<double>(count)) || found != std::floor(found)) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", NumberText(found), expected));
    }
    int64_t& first = place[static_cast<size_t>(found)];
    if (first >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is ", NumberText(found), " as element ", first, " is", expected));
    }
    first = i;
  }
  return absl::OkStatus();
}

absl::Status CheckWholeNumbers(const Elements& elements) {
  for (int64_t i = 0; i < elements.tensor.elements(); ++i) {
    if (elements[i] == std::floor(elements[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", elements[i], "; expected whole numbers"));
  }
  return absl::OkStatus();
}

absl::Status CheckHolds(const Elements& elements) {
  switch (elements.tensor.file_holds()) {
    case v1::FILL_CSR_OFFSETS:
      return CheckOffsets(elements);
    case v1::FILL_SORTED:
      return CheckRises(elements, "sorted data");
    case v1::FILL_PERMUTATION:
      return CheckPermutation(elements);
    case v1::FILL_INTEGERS:
      return CheckWholeNumbers(elements);
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<absl::string_view> DataOf(const v1::DataFile& file, const v1::PlanTensor& tensor) {
  absl::StatusOr<absl::string_view> data = ReadData(file, tensor);
  if (data.ok()) return data;
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", data.status().message()));
}

absl::Status CheckDataValues(const v1::DataFile& file, const v1::PlanTensor& tensor, absl::string_view data) {
  const Elements elements{tensor, data};
  const absl::Status status = CheckRange(elements);
  const absl::Status all = status.ok() ? CheckHolds(elements) : status;
  return all.ok() ? all : absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", all.message()));
}

std::string BesideProblem(const v1::Bundle& bundle, const std::string& path) {
  const std::filesystem::path problem(bundle.problem().path());
  return std::filesystem::path(path).lexically_normal().lexically_relative(
      problem.has_parent_path() ? problem.parent_path().lexically_normal() : std::filesystem::path("."));
}

bool IsRawData(const std::string& path) {
  return !absl::EndsWith(path, ".npy") && !absl::EndsWith(path, ".safetensors");
}

const v1::DataFile* FindDataFile(const v1::Bundle& bundle, const std::string& path) {
  for (const v1::DataFile& file : bundle.data_files()) {
    if (file.path() == path) return &file;
  }
  return nullptr;
}

}  // namespace pawl
