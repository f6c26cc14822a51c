// What a recording of a backward is made of: calls of ATen operators and accumulations, over numbered values.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace flat_loop {

// The values of one run: the outputs of its calls, each gone after its last use.
using Values = std::vector<at::Tensor>;

// A tensor in a call: an output of an earlier call, or a constant of the recording, which is a saved tensor, a
// parameter or undefined.
struct TensorInput {
  int64_t value = -1;
  at::Tensor constant;

  const at::Tensor& in(const Values& values) const { return value >= 0 ? values[value] : constant; }
};

// An argument as the call got it: a tensor, a list of tensors, or anything else, which is kept as it was.
struct Argument {
  enum class Kind { kTensor, kTensors, kOptionalTensors, kOther };
  Kind kind = Kind::kOther;
  std::vector<TensorInput> tensors;
  c10::IValue other;
};

struct Call {
  c10::OperatorHandle op;
  std::vector<Argument> arguments;
};

// The engine gives a gradient to a parameter.
struct Accumulation {
  int64_t value;
  at::Tensor parameter;
};

// One step of the flat loop. Writes the tensors that it makes to their places.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Values& values) = 0;
};

// For each tensor that a call returns, in order, the number of its value; -1 where it is undefined.
using Outputs = std::vector<int64_t>;

// The step that calls an operator as C++ code does, or null where typed_steps.cpp does not list the operator.
std::unique_ptr<Step> typed_step(const Call& call, const Outputs& outputs);

// The step that calls any operator, through boxed arguments, which costs more.
std::unique_ptr<Step> boxed_step(const Call& call, const Outputs& outputs);

// The step that steals, copies or adds up a gradient as the engine does.
std::unique_ptr<Step> accumulating_step(const Accumulation& accumulation);

}  // namespace flat_loop
