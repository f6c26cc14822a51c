#include "python/suggest.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace backbind::python {

namespace {

std::string lower(std::string_view name) {
  std::string result(name);
  std::ranges::transform(result, result.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? c - 'A' + 'a' : c; });
  return result;
}

// Characters to insert, remove, replace, or swap with their neighbour.
size_t slips(std::string_view left, std::string_view right) {
  const size_t width = right.size() + 1;
  std::vector<size_t> table((left.size() + 1) * width);
  for (size_t i = 0; i <= left.size(); ++i) {
    for (size_t j = 0; j <= right.size(); ++j) {
      size_t& cell = table[i * width + j];
      if (i == 0 || j == 0) {
        cell = i + j;
        continue;
      }
      const size_t replaced = table[(i - 1) * width + j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      cell = std::min({replaced, table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) cell = std::min(cell, table[(i - 2) * width + j - 2] + 1);
    }
  }
  return table.back();
}

size_t allowed_slips(size_t length) {
  if (length < 5) return 1;
  return length < 13 ? 2 : 3;
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view written, const std::vector<std::string_view>& known) {
  const std::string name = lower(written);
  // Fewest slips first; then the same first letter, the same length, and the alphabet.
  std::optional<std::tuple<size_t, bool, bool, std::string_view>> best;
  for (const std::string_view candidate : known) {
    if (candidate == written) continue;
    const std::string other = lower(candidate);
    const size_t count = slips(name, other);
    const bool other_start = name.substr(0, 1) != other.substr(0, 1);
    if (count > allowed_slips(written.size()) || (other_start && count > 1)) continue;
    const std::tuple rank(count, other_start, candidate.size() != written.size(), candidate);
    if (!best.has_value() || rank < *best) best = rank;
  }
  if (!best.has_value()) return std::nullopt;
  return std::get<std::string_view>(*best);
}

std::string did_you_mean(std::string_view written, const std::vector<std::string_view>& known) {
  const auto found = nearest_name(written, known);
  return found.has_value() ? ", did you mean '" + std::string(*found) + "'?" : "";
}

}  // namespace backbind::python
