// What kernels of torch rely on without a look: sizes that belong together, and numbers that they take for places.
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "nodes/memory.h"
#include "nodes/plain_sizes.h"
#include "nodes/preconditions.h"

namespace backbind {

namespace {

using Sizes = std::vector<int64_t>;

// Calls `look` with each element. Nothing goes through the dispatcher, so that nobody who watches operators sees it.
template <class Number>
void each_of(const at::Tensor& tensor, auto look) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  const auto* element = static_cast<const Number*>(tensor.const_data_ptr());
  Sizes place(sizes.size(), 0);
  for (int64_t left = tensor.numel(); left > 0; --left) {
    look(*element);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      element += strides[dim];
      if (++place[dim] < sizes[dim]) break;
      element -= strides[dim] * sizes[dim];
      place[dim] = 0;
    }
  }
}

// False where the numbers cannot be read, or are no integers.
bool each_integer(const at::Tensor& tensor, auto look) {
  if (!has_memory(tensor) || !tensor.is_cpu()) return false;
  if (tensor.scalar_type() == at::kLong) {
    each_of<int64_t>(tensor, look);
  } else if (tensor.scalar_type() == at::kInt) {
    each_of<int32_t>(tensor, look);
  } else {
    return false;
  }
  return true;
}

std::optional<Sizes> integers(const at::Tensor& tensor) {
  Sizes values;
  if (!each_integer(tensor, [&](int64_t value) { values.push_back(value); })) return std::nullopt;
  return values;
}

bool same_leading(const Sizes& left, const Sizes& right, int64_t trailing) {
  const auto count = static_cast<size_t>(trailing);
  return left.size() == right.size() && left.size() >= count &&
         std::equal(left.begin(), left.end() - trailing, right.begin());
}

}  // namespace

void Preconditions::between(const char* name, int64_t value, int64_t least, int64_t most) const {
  TORCH_CHECK_VALUE(least <= value && value <= most, node_, ": '", name, "' must lie between ", least, " and ", most,
                    ", got ", value);
}

void Preconditions::contiguous(NamedTensor tensor) const {
  if (!has_memory(tensor.tensor)) return;
  TORCH_CHECK_VALUE(tensor.tensor.is_contiguous(), node_, ": '", tensor.name, "' must be contiguous, got sizes ",
                    tensor.tensor.sizes(), " and strides ", tensor.tensor.strides());
}

void Preconditions::leading_sizes(NamedTensor first, NamedTensor second, int64_t trailing) const {
  const auto left = plain_sizes(first.tensor);
  const auto right = plain_sizes(second.tensor);
  TORCH_CHECK_VALUE(!left || !right || same_leading(*left, *right, trailing), node_, ": '", first.name, "' and '",
                    second.name, "' must have the same sizes but for the last ", trailing, ", got ",
                    at::IntArrayRef(*left), " and ", at::IntArrayRef(*right));
}

void Preconditions::values(NamedTensor tensor, int64_t least, const c10::SymInt& end) const {
  const auto limit = end.maybe_as_int();
  if (!limit) return;
  each_integer(tensor.tensor, [&](int64_t value) {
    TORCH_CHECK_VALUE(least <= value && value < *limit, node_, ": '", tensor.name, "' must hold integers from ", least,
                      " to ", *limit - 1, ", got ", value);
  });
}

void Preconditions::pooled(const variable_list& grads, int64_t spatial, NamedTensor input, NamedTensor indices) const {
  if (!grads[0].defined()) return;
  leading_sizes({"grads", grads[0]}, input, spatial);
  const auto pooled = elements(grads[0]);
  const auto whole = elements(input.tensor);
  TORCH_CHECK_VALUE(!pooled || !whole || *pooled == 0 || *whole > 0, node_, ": '", input.name,
                    "' has no elements that could be pooled, got sizes ", input.tensor.sym_sizes());
  if (!indices.tensor.defined()) return;
  gradient_sizes(grads, 0, indices);
  TORCH_CHECK_VALUE(!has_memory(indices.tensor) || indices.tensor.is_non_overlapping_and_dense(), node_, ": '",
                    indices.name, "' must lie in memory without gaps or overlaps, got sizes ", indices.tensor.sizes(),
                    " and strides ", indices.tensor.strides());
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes) return;
  const at::IntArrayRef positions(sizes->data() + sizes->size() - spatial, static_cast<size_t>(spatial));
  values(indices, 0, static_cast<int64_t>(product(positions)));
}

void Preconditions::padded(const variable_list& grads, c10::SymIntArrayRef padding, NamedTensor input) const {
  const auto added = plain_sizes(padding);
  auto expected = plain_sizes(input.tensor);
  const auto actual = plain_sizes(grads[0]);
  if (!added || !expected || !actual) return;
  TORCH_CHECK_VALUE(added->size() % 2 == 0 && added->size() / 2 <= expected->size(), node_,
                    ": 'padding' must have two elements for each of the last dimensions, got ", added->size());
  for (size_t i = 0; i < added->size(); i += 2) {
    constexpr int64_t kMost = int64_t{1} << 48;
    between("padding", (*added)[i], -kMost, kMost);
    between("padding", (*added)[i + 1], -kMost, kMost);
    expected->end()[-1 - static_cast<std::ptrdiff_t>(i / 2)] += (*added)[i] + (*added)[i + 1];
  }
  TORCH_CHECK_VALUE(*expected == *actual, node_, ": '", input.name, "' padded by ", at::IntArrayRef(*added),
                    " has a gradient of sizes ", at::IntArrayRef(*expected), ", got ", at::IntArrayRef(*actual));
}

void Preconditions::sampled(NamedTensor samples, NamedTensor input, NamedTensor grid) const {
  const auto in = plain_sizes(input.tensor);
  const auto points = plain_sizes(grid.tensor);
  const auto grad = plain_sizes(samples.tensor);
  if (!in || !points || !grad) return;
  const size_t rank = in->size();
  bool fits = rank >= 3 && points->size() == rank && grad->size() == rank;
  if (fits) {
    fits = (*points)[0] == (*in)[0] && (*grad)[0] == (*in)[0] && (*grad)[1] == (*in)[1] &&
           points->back() == static_cast<int64_t>(rank) - 2 &&
           std::equal(points->begin() + 1, points->end() - 1, grad->begin() + 2);
  }
  TORCH_CHECK_VALUE(fits, node_, ": '", input.name, "' of sizes ", at::IntArrayRef(*in), " taken at the points of '",
                    grid.name, "' of sizes ", at::IntArrayRef(*points), " cannot give '", samples.name, "' of sizes ",
                    at::IntArrayRef(*grad));
}

void Preconditions::points(NamedTensor grid, NamedTensor input, int64_t interpolation, int64_t padding) const {
  constexpr int64_t kBilinear = 0;
  constexpr int64_t kZeros = 0;
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes || interpolation != kBilinear || padding == kZeros || !has_memory(grid.tensor) || !grid.tensor.is_cpu()) {
    return;
  }
  const auto finite = [&]<class Number>(Number) {
    // The kernel reflects at most at twice the size.
    const auto scale = static_cast<Number>(4 * (*std::max_element(sizes->begin() + 2, sizes->end()) + 1));
    each_of<Number>(grid.tensor, [&](Number value) {
      TORCH_CHECK_VALUE(std::isfinite(value * scale), node_, ": '", grid.name,
                        "' must hold finite numbers where padding_mode is not zeros, got ", value);
    });
  };
  if (grid.tensor.scalar_type() == at::kDouble) finite(double{});
  if (grid.tensor.scalar_type() == at::kFloat) finite(float{});
}

void Preconditions::row_loss(const variable_list& grads, int64_t reduction, NamedTensor input) const {
  constexpr int64_t kNone = 0;
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes) return;
  element_count(reduction != kNone || sizes->size() < 2 ? 1 : sizes->front(), {{"grads", grads[0]}});
}

void Preconditions::margin_loss(const variable_list& grads, int64_t reduction, NamedTensor input, NamedTensor target,
                                NamedTensor weight) const {
  if (!grads[0].defined()) return;
  row_loss(grads, reduction, input);
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes) return;
  const int64_t classes = sizes->empty() ? 1 : sizes->back();
  element_count(sizes->size() < 2 ? 1 : sizes->front(), {target});
  element_count(classes, {weight});
  values(target, 0, classes);
}

void Preconditions::multilabel_loss(const variable_list& grads, int64_t reduction, NamedTensor input,
                                    NamedTensor target, NamedTensor is_target) const {
  if (!grads[0].defined()) return;
  row_loss(grads, reduction, input);
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes) return;
  element_count(static_cast<int64_t>(product(*sizes)), {target, is_target});
  values(target, -1, sizes->empty() ? 1 : sizes->back());
}

void Preconditions::classes(NamedTensor target, NamedTensor input, int64_t dim, const c10::SymInt& ignored) const {
  const auto sizes = plain_sizes(input.tensor);
  const auto exempt = ignored.maybe_as_int();
  if (!sizes || !exempt) return;
  const int64_t at = dim < 0 ? dim + static_cast<int64_t>(sizes->size()) : dim;
  if (at < 0 || static_cast<size_t>(at) >= sizes->size()) return;
  const int64_t count = (*sizes)[static_cast<size_t>(at)];
  each_integer(target.tensor, [&](int64_t value) {
    TORCH_CHECK_VALUE(value == *exempt || (0 <= value && value < count), node_, ": '", target.name,
                      "' must hold classes from 0 to ", count - 1, ", or ", *exempt, ", which is ignored, got ", value);
  });
}

void Preconditions::segments(const variable_list& grads, NamedTensor data, int64_t axis, NamedTensor lengths,
                             NamedTensor offsets, NamedTensor result) const {
  if (!grads[0].defined()) return;
  gradient_sizes(grads, 0, result);
  const auto sizes = plain_sizes(data.tensor);
  const auto outcome = plain_sizes(result.tensor);
  if (!sizes || !outcome) return;
  TORCH_CHECK_VALUE(axis >= 0 && static_cast<size_t>(axis) < sizes->size(), node_, ": 'axis' must be a dimension of '",
                    data.name, "' with ", sizes->size(), " dimensions, got ", axis);
  const bool has_lengths = lengths.tensor.defined();
  const NamedTensor& given = has_lengths ? lengths : offsets;
  const auto segments = plain_sizes(given.tensor);
  TORCH_CHECK_VALUE(segments.has_value(), node_, ": 'lengths' or 'offsets' must be given");
  const auto at = static_cast<size_t>(axis);
  Sizes expected = *sizes;
  const bool has_axis =
      segments->size() == at + 1 && std::equal(sizes->begin(), sizes->begin() + axis, segments->begin());
  if (has_axis) expected[at] = segments->back() - (has_lengths ? 0 : 1);
  TORCH_CHECK_VALUE(has_axis && expected == *outcome, node_, ": segments of '", data.name, "' with sizes ",
                    at::IntArrayRef(*sizes), " along dimension ", axis, ", given by '", given.name, "' with sizes ",
                    at::IntArrayRef(*segments), ", cannot give '", result.name, "' with sizes ",
                    at::IntArrayRef(*outcome));
  const auto numbers = integers(given.tensor);
  if (!numbers || segments->back() == 0) return;
  const auto row = static_cast<size_t>(segments->back());
  for (size_t i = 0; i < numbers->size(); i += row) {
    int64_t reached = 0;
    for (size_t j = i; j < i + row; ++j) {
      const int64_t number = (*numbers)[j];
      const bool fits =
          has_lengths ? number >= 0 && number <= (*sizes)[at] - reached : number >= reached && number <= (*sizes)[at];
      TORCH_CHECK_VALUE(fits, node_, ": '", given.name, "' must stay within the ", (*sizes)[at],
                        " elements of dimension ", axis, ", got ", number);
      reached = has_lengths ? reached + number : number;
    }
  }
}

void Preconditions::ctc(const variable_list& grads, NamedTensor log_probs, NamedTensor targets,
                        const std::vector<int64_t>& input_lengths, const std::vector<int64_t>& target_lengths,
                        int64_t blank, NamedTensor losses, NamedTensor alphas) const {
  if (!grads[0].defined()) return;
  const auto probs = plain_sizes(log_probs.tensor);
  const auto labels = plain_sizes(targets.tensor);
  const auto table = plain_sizes(alphas.tensor);
  if (!probs || !labels || !table) return;
  TORCH_CHECK_VALUE(probs->size() == 3, node_, ": '", log_probs.name, "' must have 3 dimensions, got ", probs->size());
  const auto& [time, batch, classes] = std::tie((*probs)[0], (*probs)[1], (*probs)[2]);
  list_length("input_lengths", input_lengths.size(), static_cast<size_t>(batch));
  list_length("target_lengths", target_lengths.size(), static_cast<size_t>(batch));
  element_count(batch, {{"grads", grads[0]}, losses});
  between("blank", blank, 0, classes - 1);
  for (const int64_t length : input_lengths) between("input_lengths", length, 0, time);
  int64_t longest = 0;
  int64_t total = 0;
  const bool is_joined = labels->size() == 1;
  TORCH_CHECK_VALUE(is_joined || (labels->size() == 2 && labels->front() == batch), node_, ": '", targets.name,
                    "' must have one row for each of the ", batch,
                    " sequences, or hold all targets one behind the other, got sizes ", at::IntArrayRef(*labels));
  for (const int64_t length : target_lengths) {
    between("target_lengths", length, 0, is_joined ? labels->back() - total : labels->back());
    longest = std::max(longest, length);
    total += length;
  }
  const bool fits = table->size() == 3 && (*table)[0] == batch && (*table)[1] == time && (*table)[2] > 2 * longest;
  TORCH_CHECK_VALUE(fits, node_, ": '", alphas.name, "' must have the sizes ",
                    at::IntArrayRef({batch, time, 2 * longest + 1}), " or more in the last dimension, got ",
                    at::IntArrayRef(*table));
  const auto numbers = integers(targets.tensor);
  if (!numbers) return;
  size_t begin = 0;
  for (const int64_t length : target_lengths) {  // what lies behind a target in its row is nobody's
    for (size_t i = begin; i < begin + static_cast<size_t>(length); ++i)
      between("targets", (*numbers)[i], 0, classes - 1);
    begin += static_cast<size_t>(is_joined ? length : labels->back());
  }
}

void Preconditions::ctc(const variable_list& grads, NamedTensor log_probs, NamedTensor targets,
                        const at::Tensor& input_lengths, const at::Tensor& target_lengths, int64_t blank,
                        NamedTensor losses, NamedTensor alphas) const {
  const auto of_inputs = integers(input_lengths);
  const auto of_targets = integers(target_lengths);
  if (of_inputs && of_targets) ctc(grads, log_probs, targets, *of_inputs, *of_targets, blank, losses, alphas);
}

void Preconditions::bags(const variable_list& grads, NamedTensor indices, NamedTensor offsets,
                         NamedTensor bag_of_index) const {
  const auto grad = plain_sizes(grads[0]);
  const auto count = elements(indices.tensor);
  const auto known = elements(bag_of_index.tensor);
  if (!grad || !count || !known) return;
  TORCH_CHECK_VALUE(grad->size() == 2, node_, ": the gradient must have 2 dimensions, got ", grad->size());
  const auto last = static_cast<int64_t>(*count);
  if (*known != 0) {
    element_count(last, {bag_of_index});
    values(bag_of_index, 0, grad->front());
    return;
  }
  const auto begins = integers(offsets.tensor);
  if (!begins || last == 0) return;
  const auto filled = std::count_if(begins->begin(), begins->end(), [&](int64_t begin) { return begin < last; });
  const bool fits = !begins->empty() && begins->front() == 0 && std::is_sorted(begins->begin(), begins->end()) &&
                    begins->back() <= last && filled <= grad->front();
  TORCH_CHECK_VALUE(fits, node_, ": '", offsets.name, "' must rise from 0 to at most ", last, " and begin ",
                    grad->front(), " bags, got ", at::IntArrayRef(*begins));
}

void Preconditions::bag_gradient(const variable_list& grads, NamedTensor indices, const c10::SymInt& rows, int64_t mode,
                                 NamedTensor bag_sizes, NamedTensor maxima, NamedTensor weights) const {
  constexpr int64_t kSum = 0;
  constexpr int64_t kMaximum = 2;
  const auto grad = plain_sizes(grads[0]);
  const auto count = elements(indices.tensor);
  if (!grad || !count) return;
  between("mode", mode, kSum, kMaximum);
  values(indices, 0, rows);
  element_count(static_cast<int64_t>(*count), {weights});
  const auto counted = elements(bag_sizes.tensor);
  TORCH_CHECK_VALUE(!counted || mode == kSum || *counted >= static_cast<uint64_t>(grad->front()), node_, ": '",
                    bag_sizes.name, "' must have one element for each of the ", grad->front(), " bags, got ", *counted);
  if (mode != kMaximum) return;
  gradient_sizes(grads, 0, maxima);
  values(maxima, -1, rows);
}

void Preconditions::readable(NamedTensor tensor) const {
  const at::Tensor& value = tensor.tensor;
  TORCH_CHECK_VALUE(!value.defined() || (has_memory(value) && value.is_cpu()), node_, ": '", tensor.name,
                    "' must be a dense tensor on the CPU, because the formula reads its numbers; meta, fake, batched "
                    "and symbolic tensors have none to read");
}

void Preconditions::rows(NamedTensor indices, NamedTensor matrix) const {
  const auto sizes = plain_sizes(matrix.tensor);
  if (sizes && !sizes->empty()) values(indices, 0, sizes->front());
}

void Preconditions::unfolded(const variable_list& grads, c10::SymIntArrayRef sizes, int64_t dim, int64_t size,
                             int64_t step) const {
  const auto input = plain_sizes(sizes);
  const auto grad = plain_sizes(grads[0]);
  if (!input || !grad) return;
  positive("step", step);
  const auto rank = static_cast<int64_t>(input->size());
  this->dim("dimension", dim, rank);
  Sizes expected = *input;
  const int64_t length = rank == 0 ? 1 : (*input)[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
  between("size", size, 0, length);
  if (rank > 0) expected[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = (length - size) / step + 1;
  expected.push_back(size);
  TORCH_CHECK_VALUE(expected == *grad, node_, ": a tensor of sizes ", at::IntArrayRef(*input),
                    " unfolded has a gradient of sizes ", at::IntArrayRef(expected), ", got ", at::IntArrayRef(*grad));
}

}  // namespace backbind
