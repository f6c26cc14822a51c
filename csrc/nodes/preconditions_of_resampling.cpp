#include <c10/util/Exception.h>

#include <algorithm>

#include "nodes/plain_sizes.h"
#include "nodes/preconditions.h"

namespace backbind {

namespace {

// Whether the first pixel that is read for the last place of a dimension lies in the image.
bool lies_inside(int64_t pixels, int64_t places, double scale, int64_t reach) {
  const double step = 1.0 / scale;
  const double support = static_cast<double>(reach) * std::max(step, 1.0);
  const double center = step * (static_cast<double>(places) - 0.5);
  return center - support + 0.5 < static_cast<double>(pixels);
}

}  // namespace

void Preconditions::antialiased(const variable_list& grads, c10::SymIntArrayRef sizes, bool align_corners,
                                std::optional<double> scale_of_height, std::optional<double> scale_of_width,
                                int64_t reach) const {
  constexpr size_t kDimensions = 4;
  const auto image = plain_sizes(grads[0]);
  const auto places = plain_sizes(sizes);
  if (!image || image->size() != kDimensions || !places || places->size() != 2 || align_corners) return;
  const std::optional<double> scales[] = {scale_of_height, scale_of_width};
  for (size_t i = 0; i < places->size(); ++i) {
    const int64_t pixels = (*image)[i + 2];
    const double scale = scales[i].value_or(0.0);
    // A scale that is not positive is none.
    if (!(scale > 0.0) || (*places)[i] == 0) continue;
    TORCH_CHECK_VALUE(lies_inside(pixels, (*places)[i], scale, reach), node_, ": an image of ", pixels,
                      i == 0 ? " rows" : " columns", " cannot be brought to ", (*places)[i], " by the scale ", scale);
  }
}

}  // namespace backbind
