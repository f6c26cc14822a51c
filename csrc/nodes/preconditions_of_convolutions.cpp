#include <c10/util/Exception.h>

#include <vector>

#include "nodes/plain_sizes.h"
#include "nodes/preconditions.h"

namespace backbind {

namespace {

using Sizes = std::vector<int64_t>;

// What kernels can count with, so that nothing here overflows.
constexpr int64_t kLargest = int64_t{1} << 30;

struct Dimension {
  int64_t input;
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t dilation;
  int64_t output_padding;
};

int64_t output_of(const Dimension& one) {
  const int64_t reach = one.dilation * (one.kernel - 1) + 1;
  const int64_t room = one.input + 2 * one.padding - reach;
  return room < 0 ? 0 : room / one.stride + 1;
}

int64_t transposed_output_of(const Dimension& one) {
  const int64_t reach = one.dilation * (one.kernel - 1) + 1;
  return (one.input - 1) * one.stride - 2 * one.padding + reach + one.output_padding;
}

}  // namespace

void Preconditions::convolution(NamedTensor gradient, NamedTensor input, NamedTensor weight, const PerDimension& stride,
                                const PerDimension& padding, const PerDimension& dilation, bool transposed,
                                const PerDimension& output_padding, const c10::SymInt& groups) const {
  constexpr size_t kChannels = 2;  // those of the result and of the input
  const auto grad = plain_sizes(gradient.tensor);
  const auto from = plain_sizes(input.tensor);
  const auto kernel = plain_sizes(weight.tensor);
  const auto group_count = groups.maybe_as_int();
  if (!grad || !from || !kernel || !group_count) return;
  between("groups", *group_count, 1, kLargest);
  const size_t spatial = kernel->size() < kChannels ? 0 : kernel->size() - kChannels;
  const bool has_batch = from->size() == spatial + 2;
  const auto refuse = [&](const char* what) {
    TORCH_CHECK_VALUE(false, node_, ": ", what, ": sizes of '", gradient.name, "' ", at::IntArrayRef(*grad), ", of '",
                      input.name, "' ", at::IntArrayRef(*from), ", of '", weight.name, "' ", at::IntArrayRef(*kernel));
  };
  if (spatial == 0 || (!has_batch && from->size() != spatial + 1)) refuse("no convolution takes such tensors");
  if (!stride.fits(spatial) || !padding.fits(spatial) || !dilation.fits(spatial) || !output_padding.fits(spatial))
    refuse("stride, padding, dilation and output padding must have one number for each dimension");

  const int64_t channels = (*from)[has_batch ? 1 : 0];
  const int64_t first = (*kernel)[0];
  const int64_t second = (*kernel)[1];
  if (channels != (transposed ? first : second * *group_count) || first % *group_count != 0)
    refuse("the channels do not fit together");
  Sizes expected(from->begin(), from->begin() + (has_batch ? 1 : 0));
  expected.push_back(transposed ? second * *group_count : first);
  for (size_t i = 0; i < spatial; ++i) {
    const auto step = stride.of(i);
    const auto pad = padding.of(i);
    const auto spread = dilation.of(i);
    const auto more = output_padding.of(i);
    if (!step || !pad || !spread || !more) return;
    between("stride", *step, 1, kLargest);
    between("padding", *pad, 0, kLargest);
    between("dilation", *spread, 1, kLargest);
    between("output_padding", *more, 0, kLargest);
    const Dimension one{(*from)[from->size() - spatial + i], (*kernel)[i + kChannels], *step, *pad, *spread, *more};
    if (one.input > kLargest || one.kernel > kLargest) return;
    expected.push_back(transposed ? transposed_output_of(one) : output_of(one));
  }
  if (expected != *grad) refuse("the gradient is not that of such a convolution");
}

}  // namespace backbind
