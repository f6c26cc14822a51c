#include "graph/lifted_values.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <bit>
#include <cstring>
#include <string>

#include "gradients/expected_grad.h"
#include "ivalue/pack.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

constexpr int64_t kAbsent = -1;
constexpr int64_t kSymbol = -3;

class Reader {
 public:
  Reader(LiftedValues& values, FactPlaces* places) : values_(values), places_(places) {}

  void gradients_of_outputs(const std::vector<at::Tensor>& gradients) {
    place_ = {.step = 0, .argument = FactPlace::kWholeBackward, .item = 0};
    for (const at::Tensor& gradient : gradients) tensor(gradient);
  }

  void step(const Plan& plan, const Step& step, uint32_t position, const LiveNodes& nodes) {
    Node& node = *nodes[position];
    StepCode code{.hooks = HookSet(node, step.runs),
                  .unpack_count = 0,
                  .is_opaque = step.runs && !step.is_accumulate_grad && step.binding == nullptr,
                  .leaf_grad_dtype = std::nullopt};
    place_ = {.step = position, .argument = FactPlace::kHooks, .item = 0};
    constant(code.hooks.bits());
    if (step.is_accumulate_grad && step.runs) {
      place_.argument = FactPlace::kLeaf;
      const at::Tensor& variable = static_cast<AccumulateGrad&>(node).variable;
      TORCH_CHECK(is_leaf_of(variable, node), "a leaf no longer accumulates");
      tensor(variable);
      code.leaf_grad_dtype = node.input_metadata(0).grad_dtype();
    } else if (has_operator(step)) {
      const uint32_t before = unpacked_later_;
      arguments(plan, step, node);
      code.unpack_count = unpacked_later_ - before;
      expected_grads(plan, step, node, nodes);
    }
    values_.code.push_back(code);
  }

 private:
  void arguments(const Plan& plan, const Step& step, Node& node) {
    const std::vector<bool> needed = needed_edges(plan, step);
    PackWriter writer(node, &needed, UnpackHooks::kLeave);
    step.binding->pack(node, writer);
    const std::vector<c10::IValue> packed = writer.take();
    for (size_t i = 0; i < step.binding->arguments.size(); ++i) {
      place_.argument = static_cast<uint16_t>(i);
      place_.item = 0;
      value(step.binding->arguments[i].kind, packed[i + 1]);
    }
  }

  void expected_grads(const Plan& plan, const Step& step, const Node& node, const LiveNodes& nodes) {
    const auto edges = plan.next_edges_of(step);
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i].is_followed()) continue;
      place_.argument = FactPlace::kExpectedGrad;
      place_.item = static_cast<uint16_t>(i);
      const auto expected = expected_grad(nodes[edges[i].step]->input_metadata(edges[i].input_nr), &node);
      if (!expected.has_value()) {
        constant(kAbsent);
        continue;
      }
      constant(static_cast<int64_t>(expected->sizes.size()));
      for (const c10::SymInt& one : expected->sizes) size(one);
      constant(expected->dtype.has_value() ? static_cast<int64_t>(*expected->dtype) : kAbsent);
      if (expected->device.has_value()) device(*expected->device);
    }
  }

  void value(ValueKind kind, const c10::IValue& value) {
    if (value.isNone()) return constant(kAbsent);
    if (kind.form == Form::kOne || kind.form == Form::kOptional) return element(kind.element, value);
    const auto list = value.toList();
    constant(static_cast<int64_t>(list.size()));
    for (size_t i = 0; i < list.size(); ++i) {
      place_.item = static_cast<uint16_t>(i);
      element(kind.element, list.get(i));
    }
  }

  void element(ElementKind kind, const c10::IValue& value) {
    if (value.isNone()) return constant(kAbsent);
    switch (kind) {
      case ElementKind::kTensor:
        return tensor(value.toTensor());
      case ElementKind::kBool:
        return constant(value.toBool() ? 1 : 0);
      case ElementKind::kInt:
        return number({.is_float = false, .bits = std::bit_cast<uint64_t>(value.toInt())});
      case ElementKind::kScalarType:
      case ElementKind::kLayout:
        return constant(value.toInt());
      case ElementKind::kSymInt:
        return size(value.toSymInt());
      case ElementKind::kFloat:
        return number({.is_float = true, .bits = std::bit_cast<uint64_t>(value.toDouble())});
      case ElementKind::kScalar:
        return scalar(value.toScalar());
      case ElementKind::kDevice:
        return device(value.toDevice());
      case ElementKind::kStr:
        return text(value.toStringRef());
    }
  }

  void tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return constant(kAbsent);
    const int64_t which = number_of(tensor);
    values_.tensor_order.push_back(which);
    constant(which);
  }

  int64_t number_of(const at::Tensor& tensor) {
    if (tensor.is_same(PackWriter::unpacked_later())) {
      unpacked_later_ += 1;
      return LiftedValues::kUnpackedLater;
    }
    const auto [place, is_new] = known_.emplace(tensor.unsafeGetTensorImpl(), values_.tensors.size());
    if (is_new) values_.tensors.push_back(tensor);
    return static_cast<int64_t>(place->second);
  }

  void scalar(const at::Scalar& scalar) {
    constant(static_cast<int64_t>(scalar.type()));
    if (scalar.isSymbolic()) {
      TORCH_CHECK(scalar.type() == at::ScalarType::Long, "a saved number is a symbol");
      constant(kSymbol);  // equal constants are to mean equally many sizes and numbers
      return size(scalar.toSymInt());
    }
    if (scalar.isFloatingPoint()) {
      number({.is_float = true, .bits = std::bit_cast<uint64_t>(scalar.toDouble())});
    } else if (scalar.type() == at::ScalarType::Long) {
      number({.is_float = false, .bits = std::bit_cast<uint64_t>(scalar.toLong())});
    } else if (scalar.isComplex()) {
      const auto value = scalar.toComplexDouble();
      constant(std::bit_cast<int64_t>(value.real()));
      constant(std::bit_cast<int64_t>(value.imag()));
    } else {
      constant(scalar.isBoolean() ? int64_t{scalar.toBool()} : static_cast<int64_t>(scalar.toUInt64()));
    }
  }

  void device(at::Device device) {
    constant(static_cast<int64_t>(device.type()));
    constant(device.index());
  }

  void text(const std::string& text) {
    constant(static_cast<int64_t>(text.size()));
    for (size_t i = 0; i < text.size(); i += sizeof(int64_t)) {
      int64_t part = 0;
      std::memcpy(&part, text.data() + i, std::min(sizeof part, text.size() - i));
      constant(part);
    }
  }

  void constant(int64_t value) {
    values_.facts.constants.push_back(value);
    if (places_ != nullptr) places_->constants.push_back(place_);
  }

  void size(c10::SymInt value) {
    values_.facts.sizes.push_back(std::move(value));
    if (places_ != nullptr) places_->sizes.push_back(place_);
  }

  void number(Number value) {
    values_.facts.numbers.push_back(value);
    if (places_ != nullptr) places_->numbers.push_back(place_);
  }

  LiftedValues& values_;
  FactPlaces* places_;
  FactPlace place_{};
  ska::flat_hash_map<const c10::TensorImpl*, size_t> known_;
  uint32_t unpacked_later_ = 0;
};

}  // namespace

namespace {

// Whether the leaf has the sizes that it had in the forward: its data may have been set to another tensor's.
bool has_sizes_of(const at::Tensor& variable, const Node& accumulator) {
  const auto& metadata = accumulator.input_metadata(0);
  return metadata.is_nested_tensor() || variable.is_nested() ||
         variable.sym_sizes().equals(metadata.shape_as_dim_vector());
}

}  // namespace

bool is_leaf_of(const at::Tensor& variable, const Node& accumulator) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(variable);
  return meta != nullptr && meta->requires_grad_ && meta->grad_fn_ == nullptr &&
         meta->grad_accumulator_.lock().get() == &accumulator && has_sizes_of(variable, accumulator);
}

std::vector<bool> needed_edges(const Plan& plan, const Step& step) {
  std::vector<bool> needed;
  needed.reserve(step.num_edges);
  for (const InputRef& edge : plan.next_edges_of(step)) needed.push_back(edge.is_followed());
  return needed;
}

LiftedValues lift_values(const Plan& plan, const LiveNodes& nodes, const Request& request, FactPlaces* places) {
  LiftedValues values;
  values.code.reserve(plan.steps.size());
  values.facts.constants.reserve(16 * plan.steps.size());
  values.facts.sizes.reserve(8 * plan.steps.size());
  Reader reader(values, places);
  reader.gradients_of_outputs(torch_private::root_gradients(*request.graph_root));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    reader.step(plan, plan.steps[i], static_cast<uint32_t>(i), nodes);
  }
  return values;
}

}  // namespace backbind
