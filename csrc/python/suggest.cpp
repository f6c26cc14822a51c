#include "python/suggest.h"

#include <algorithm>
#include <cstddef>

namespace backbind::python {

namespace {

// Letters to insert, remove, replace, or swap with their neighbour.
size_t edit_distance(std::string_view left, std::string_view right) {
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

}  // namespace

std::string suggestion(std::string_view given, const std::vector<std::string_view>& known) {
  std::string_view nearest;
  size_t best = std::max<size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    const size_t distance = edit_distance(given, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  if (!nearest.empty()) return ", did you mean '" + std::string(nearest) + "'?";
  std::string list = "; its arguments are: ";
  for (size_t i = 0; i < known.size(); ++i) list.append(i == 0 ? "" : ", ").append(known[i]);
  return list;
}

}  // namespace backbind::python
