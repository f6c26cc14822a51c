#include "recorder.h"

#include <torch/library.h>

#include <utility>

namespace flat_loop {

namespace {

// No operator has a kernel there, so the fallback below gets every call before autograd does. The engine carries the
// key into the nodes that it runs.
constexpr auto kRecorderKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

Recorder* active = nullptr;

bool is_optional_tensors(const c10::IValue& value) {
  return value.isList() && value.toList().elementType()->kind() == c10::TypeKind::OptionalType;
}

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& one : value.toTensorVector()) visit(one);
  } else if (is_optional_tensors(value)) {
    for (const c10::IValue& one : value.toListRef()) visit(one.isTensor() ? one.toTensor() : at::Tensor());
  }
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    // Made of other operators, whose calls are seen because the key stays on.
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kRecorderKey), stack);
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard excluded(kRecorderKey);
  active->call(op, *stack);
}

}  // namespace

void Recorder::call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (is_accumulating_) {
    op.callBoxed(stack);
    return;
  }
  Recorded recorded;
  recorded.call.emplace(Call{op, {}});
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().arguments().size()))
    recorded.call->arguments.push_back(argument(value));
  op.callBoxed(stack);
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().returns().size()))
    for_each_tensor(value, [&](const at::Tensor& tensor) { recorded.outputs.push_back(output(tensor)); });
  recorded_.push_back(std::move(recorded));
}

void Recorder::begin_accumulation(const at::Tensor& gradient, const at::Tensor& parameter) {
  const auto found = numbers_.find(gradient.unsafeGetTensorImpl());
  TORCH_CHECK(found != numbers_.end(), "a parameter gets a gradient that no call of an operator returned");
  is_accumulating_ = true;
  Recorded recorded;
  recorded.accumulation.emplace(Accumulation{found->second, parameter});
  recorded_.push_back(std::move(recorded));
}

void Recorder::end_accumulation() { is_accumulating_ = false; }

std::vector<Recorded> Recorder::finish() {
  std::unordered_set<int64_t> seen;
  for (auto recorded = recorded_.rbegin(); recorded != recorded_.rend(); ++recorded) {
    const auto use = [&](int64_t value) {
      if (value >= 0 && seen.insert(value).second) recorded->last_used.push_back(value);
    };
    for (const int64_t value : recorded->outputs) use(value);
    if (recorded->accumulation) use(recorded->accumulation->value);
    if (!recorded->call) continue;
    for (const Argument& argument : recorded->call->arguments)
      for (const TensorInput& input : argument.tensors) use(input.value);
  }
  return std::move(recorded_);
}

Argument Recorder::argument(const c10::IValue& value) {
  using Kind = Argument::Kind;
  Argument made;
  made.kind = value.isTensor()             ? Kind::kTensor
              : value.isTensorList()       ? Kind::kTensors
              : is_optional_tensors(value) ? Kind::kOptionalTensors
                                           : Kind::kOther;
  if (made.kind == Kind::kOther) made.other = value;
  for_each_tensor(value, [&](const at::Tensor& tensor) { made.tensors.push_back(input(tensor)); });
  return made;
}

TensorInput Recorder::input(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
  if (found != numbers_.end()) return {found->second, {}};
  if (tensor.has_storage()) {
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    // As a constant it would freeze something that has to be computed anew.
    TORCH_CHECK(!made_storages_.contains(storage), "a tensor came of a gradient without a call of an operator");
    constant_storages_.insert(storage);
  }
  return {-1, tensor.detach()};  // so that it does not keep the graph
}

int64_t Recorder::output(const at::Tensor& tensor) {
  if (!tensor.defined()) return -1;
  const auto [place, is_new] = numbers_.try_emplace(tensor.unsafeGetTensorImpl(), value_count_);
  if (!is_new) return place->second;
  weak_outputs_.emplace_back(tensor.getIntrusivePtr());
  if (tensor.has_storage()) {
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (!constant_storages_.contains(storage) && made_storages_.insert(storage).second)
      weak_storages_.push_back(tensor.storage().getWeakStorageImpl());
  }
  return value_count_++;
}

Recording::Recording(Recorder& recorder) : included_(kRecorderKey) { active = &recorder; }

Recording::~Recording() { active = nullptr; }

}  // namespace flat_loop

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&flat_loop::fallback>());
}
