// Flat loops for Python: records a backward, and runs the same ATen calls again.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/custom_class.h>

#include <map>
#include <string>
#include <utility>

#include "recorder.h"

namespace flat_loop {

namespace {

using torch::autograd::variable_list;

struct BeforeAccumulation : torch::autograd::FunctionPreHook {
  BeforeAccumulation(Recorder& to, at::Tensor into) : recorder(to), parameter(std::move(into)) {}

  variable_list operator()(const variable_list& gradients) override {
    recorder.begin_accumulation(gradients[0], parameter);
    return gradients;
  }

  Recorder& recorder;
  at::Tensor parameter;
};

struct AfterAccumulation : torch::autograd::FunctionPostHook {
  explicit AfterAccumulation(Recorder& to) : recorder(to) {}

  variable_list operator()(const variable_list& results, const variable_list&) override {
    recorder.end_accumulation();
    return results;
  }

  Recorder& recorder;
};

// Hooks on the nodes that accumulate, for as long as this lives.
class AccumulationHooks {
 public:
  AccumulationHooks(Recorder& recorder, const std::vector<at::Tensor>& parameters) {
    for (const at::Tensor& parameter : parameters) {
      auto node = torch::autograd::impl::grad_accumulator(parameter);
      node->add_pre_hook(std::make_unique<BeforeAccumulation>(recorder, parameter));
      const auto key = node->add_post_hook(std::make_unique<AfterAccumulation>(recorder));
      hooked_.emplace_back(std::move(node), key);
    }
  }
  ~AccumulationHooks() {
    for (const auto& [node, key] : hooked_) {
      node->pre_hooks().pop_back();
      node->del_post_hook(key);
    }
  }
  AccumulationHooks(const AccumulationHooks&) = delete;
  AccumulationHooks& operator=(const AccumulationHooks&) = delete;

 private:
  std::vector<std::pair<decltype(torch::autograd::Edge::function), uintptr_t>> hooked_;
};

struct Loop : torch::CustomClassHolder {
  // The loop of `loss.backward()`. It must be the loss's only backward, and no gradient may be there yet.
  Loop(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
    Recorder recorder;
    {
      const AccumulationHooks hooks(recorder, parameters);
      const Recording recording(recorder);
      loss.backward();
    }
    for (const Recorded& recorded : recorder.finish()) add(recorded);
    values_.resize(recorder.value_count());
  }

  void add(const Recorded& recorded) {
    std::unique_ptr<Step> step;
    if (recorded.accumulation) {
      step = accumulating_step(*recorded.accumulation);
    } else {
      ++calls_[toString(recorded.call->op.operator_name())];
      step = typed_step(*recorded.call, recorded.outputs);
      if (step == nullptr) {
        ++boxed_[toString(recorded.call->op.operator_name())];
        step = boxed_step(*recorded.call, recorded.outputs);
      }
    }
    steps_.push_back({std::move(step), recorded.last_used});
  }

  void run() {
    const c10::AutoGradMode without_graph(false);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (const auto& [step, last_used] : steps_) {
      step->run(values_);
      for (const int64_t value : last_used) values_[value].reset();
    }
  }

  struct Timed {
    std::unique_ptr<Step> step;
    std::vector<int64_t> last_used;
  };
  std::vector<Timed> steps_;
  Values values_;
  std::map<std::string, int64_t> calls_, boxed_;
};

c10::Dict<std::string, int64_t> as_dict(const std::map<std::string, int64_t>& counts) {
  c10::Dict<std::string, int64_t> made;
  for (const auto& [name, count] : counts) made.insert(name, count);
  return made;
}

}  // namespace

}  // namespace flat_loop

TORCH_LIBRARY(backbind_flat_loop, library) {
  using flat_loop::Loop;
  library.class_<Loop>("FlatLoop")
      .def(torch::init<const at::Tensor&, const std::vector<at::Tensor>&>())
      .def("run", [](const c10::intrusive_ptr<Loop>& self) { self->run(); })
      .def("calls", [](const c10::intrusive_ptr<Loop>& self) { return flat_loop::as_dict(self->calls_); })
      .def("boxed", [](const c10::intrusive_ptr<Loop>& self) { return flat_loop::as_dict(self->boxed_); });
}
