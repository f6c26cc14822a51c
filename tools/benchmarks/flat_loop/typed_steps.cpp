// Steps that call an operator as C++ code does: its arguments are converted beforehand, its tensors read from the
// values.
#include "recorded_call.h"

// They need at::Tensor, and do not include it.
#include <ATen/ops/_embedding_bag_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_unsafe_view_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/permute_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/select_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/t_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <ATen/ops/unsqueeze_ops.h>
#include <ATen/ops/view_ops.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace flat_loop {

namespace {

// How an argument of type T is kept until the call, and what the call gets. In general: as the value that it is.
template <class T>
struct Held {
  explicit Held(const Argument& argument) : kept(argument.other.to<T>()) {}
  const T& in(const Values&) const { return kept; }
  T kept;
};

template <>
struct Held<at::Tensor> {
  explicit Held(const Argument& argument) : kept(argument.tensors.at(0)) {}
  // Operators take a tensor by reference to const or not, by whether they are in place.
  at::Tensor& in(Values& values) { return kept.value >= 0 ? values[kept.value] : kept.constant; }
  TensorInput kept;
};

template <>
struct Held<std::optional<at::Tensor>> {
  explicit Held(const Argument& argument) : kept(argument.tensors) {}
  std::optional<at::Tensor> in(const Values& values) const {
    return kept.empty() ? std::nullopt : std::optional(kept[0].in(values));
  }
  std::vector<TensorInput> kept;
};

template <>
struct Held<at::ITensorListRef> {
  explicit Held(const Argument& argument) : kept(argument.tensors) {}
  std::vector<at::Tensor> in(const Values& values) const {
    std::vector<at::Tensor> tensors;
    tensors.reserve(kept.size());
    for (const TensorInput& input : kept) tensors.push_back(input.in(values));
    return tensors;
  }
  std::vector<TensorInput> kept;
};

template <>
struct Held<c10::string_view> : Held<std::string> {
  using Held<std::string>::Held;
};

template <class T>
struct Held<c10::ArrayRef<T>> : Held<std::vector<T>> {
  using Held<std::vector<T>>::Held;
};

template <>
struct Held<c10::SymIntArrayRef> {
  explicit Held(const Argument& argument) : kept(argument.other.toSymIntVector()) {}
  c10::SymIntArrayRef in(const Values&) const { return kept; }
  std::vector<c10::SymInt> kept;
};

template <class T>
struct Held<at::OptionalArrayRef<T>> {
  explicit Held(const Argument& argument) {
    if constexpr (std::is_same_v<T, c10::SymInt>) {
      if (!argument.other.isNone()) kept = argument.other.toSymIntVector();
    } else {
      kept = argument.other.to<std::optional<std::vector<T>>>();
    }
  }
  at::OptionalArrayRef<T> in(const Values&) const {
    return kept ? at::OptionalArrayRef<T>(*kept) : at::OptionalArrayRef<T>();
  }
  std::optional<std::vector<T>> kept;
};

// What a call returns, written to its places one tensor after another.
class Writer {
 public:
  Writer(Values& values, const Outputs& outputs) : values_(values), output_(outputs.begin()) {}

  void write(at::Tensor&& tensor) {
    const int64_t value = *output_++;
    if (value >= 0) values_[value] = std::move(tensor);
  }
  // In place: the value is there already.
  void write(at::Tensor& tensor) { write(at::Tensor(tensor)); }
  template <class... Tensors>
  void write(std::tuple<Tensors...>&& tensors) {
    std::apply([this](auto&&... one) { (write(std::forward<decltype(one)>(one)), ...); }, std::move(tensors));
  }

 private:
  Values& values_;
  Outputs::const_iterator output_;
};

template <class Operator, class Schema>
class TypedStep;

template <class Operator, class Result, class... Arguments>
class TypedStep<Operator, Result(Arguments...)> : public Step {
 public:
  TypedStep(const Call& call, Outputs outputs)
      : TypedStep(call, std::move(outputs), std::index_sequence_for<Arguments...>()) {}

  void run(Values& values) override {
    std::apply([&](auto&... held) { Writer(values, outputs_).write(Operator::call(held.in(values)...)); }, arguments_);
  }

 private:
  template <size_t... kPositions>
  TypedStep(const Call& call, Outputs outputs, std::index_sequence<kPositions...>)
      : arguments_(Held<std::remove_cvref_t<Arguments>>(call.arguments.at(kPositions))...),
        outputs_(std::move(outputs)) {}

  std::tuple<Held<std::remove_cvref_t<Arguments>>...> arguments_;
  Outputs outputs_;
};

using Maker = std::unique_ptr<Step> (*)(const Call&, const Outputs&);
using Makers = std::unordered_map<std::string, Maker>;

template <class Operator>
std::unique_ptr<Step> make(const Call& call, const Outputs& outputs) {
  return std::make_unique<TypedStep<Operator, typename Operator::schema>>(call, outputs);
}

template <class... Operators>
Makers makers_of() {
  const auto name = [](std::string operator_name, const std::string& overload) {
    return overload.empty() ? operator_name : operator_name + "." + overload;
  };
  return {{name(Operators::name, Operators::overload_name), &make<Operators>}...};
}

// The operators that the backwards of the benchmark's models call.
const Makers& makers() {
  namespace ops = at::_ops;
  static const Makers all =
      makers_of<ops::_embedding_bag_backward, ops::_scaled_dot_product_flash_attention_for_cpu_backward,
                ops::_unsafe_view, ops::add_Tensor, ops::add__Tensor, ops::cat, ops::clone, ops::convolution_backward,
                ops::div_Scalar, ops::expand, ops::gelu_backward, ops::mm, ops::mul_Scalar, ops::mul_Tensor,
                ops::native_batch_norm_backward, ops::native_layer_norm_backward, ops::neg, ops::ones_like,
                ops::permute, ops::pow_Tensor_Scalar, ops::select_backward, ops::sigmoid_backward, ops::squeeze_dim,
                ops::sum_dim_IntList, ops::t, ops::tanh_backward, ops::threshold_backward, ops::transpose_int,
                ops::unsqueeze, ops::view>();
  return all;
}

}  // namespace

std::unique_ptr<Step> typed_step(const Call& call, const Outputs& outputs) {
  const auto found = makers().find(toString(call.op.operator_name()));
  return found == makers().end() ? nullptr : found->second(call, outputs);
}

}  // namespace flat_loop
