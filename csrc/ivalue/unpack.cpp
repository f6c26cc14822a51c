#include "ivalue/unpack.h"

#include <c10/util/Exception.h>

namespace backbind {

using c10::IValue;

ArgumentReader::ArgumentReader(const char* node, const std::vector<IValue>& values, size_t expected)
    : node_(node), next_(values.data()) {
  TORCH_CHECK_TYPE(values.size() == expected, node, ": expected needs_input_grad and ", expected - 1,
                   " saved values, got ", values.size(), " arguments");
}

void ArgumentReader::read_mask(bool* needed, size_t count) {
  const IValue& value = next();
  if (value.isInt()) {
    const auto flags = static_cast<uint64_t>(value.toInt());
    for (size_t i = 0; i < count; ++i) needed[i] = ((flags >> i) & 1U) != 0;
    return;
  }
  const auto mask = value.toBoolList();
  TORCH_CHECK_VALUE(mask.size() == count, node_, ": needs_input_grad must have one flag for each of the ", count,
                    " differentiable inputs, got ", mask.size());
  for (size_t i = 0; i < count; ++i) needed[i] = mask.get(i);
}

}  // namespace backbind
