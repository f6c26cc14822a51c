// The steps that work for any operator.
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <utility>

#include "recorded_call.h"

namespace flat_loop {

namespace {

class BoxedStep : public Step {
 public:
  BoxedStep(const Call& call, Outputs outputs) : call_(call), outputs_(std::move(outputs)) {}

  void run(Values& values) override {
    for (const Argument& argument : call_.arguments) stack_.push_back(as_value(argument, values));
    call_.op.callBoxed(stack_);
    auto output = outputs_.begin();
    for (c10::IValue& result : stack_) {
      if (result.isTensor()) {
        write(values, *output++, std::move(result).toTensor());
      } else {
        for (at::Tensor& one : result.toTensorVector()) write(values, *output++, std::move(one));
      }
    }
    stack_.clear();
  }

 private:
  static void write(Values& values, int64_t value, at::Tensor tensor) {
    if (value >= 0) values[value] = std::move(tensor);
  }

  static c10::IValue as_value(const Argument& argument, const Values& values) {
    switch (argument.kind) {
      case Argument::Kind::kTensor:
        return argument.tensors[0].in(values);
      case Argument::Kind::kTensors: {
        c10::List<at::Tensor> list;
        for (const TensorInput& input : argument.tensors) list.push_back(input.in(values));
        return list;
      }
      case Argument::Kind::kOptionalTensors: {
        c10::List<std::optional<at::Tensor>> list;
        for (const TensorInput& input : argument.tensors) {
          const at::Tensor& tensor = input.in(values);
          list.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
        }
        return list;
      }
      case Argument::Kind::kOther:
        break;
    }
    return argument.other;
  }

  Call call_;
  Outputs outputs_;
  torch::jit::Stack stack_;
};

class AccumulatingStep : public Step {
 public:
  explicit AccumulatingStep(Accumulation accumulation) : accumulation_(std::move(accumulation)) {}

  void run(Values& values) override {
    at::Tensor& grad = accumulation_.parameter.mutable_grad();
    // One reference is that of `values`; the gradient is stolen where nothing later reads it, and no other has one.
    torch::autograd::AccumulateGrad::accumulateGrad(accumulation_.parameter, grad, values[accumulation_.value], 1,
                                                    [&grad](at::Tensor&& made) { grad = std::move(made); });
  }

 private:
  Accumulation accumulation_;
};

}  // namespace

std::unique_ptr<Step> boxed_step(const Call& call, const Outputs& outputs) {
  return std::make_unique<BoxedStep>(call, outputs);
}

std::unique_ptr<Step> accumulating_step(const Accumulation& accumulation) {
  return std::make_unique<AccumulatingStep>(accumulation);
}

}  // namespace flat_loop
