#include "graph/graph_run.h"

#include <ATen/ThreadLocalState.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "gradients/validate.h"
#include "ivalue/pack.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::Node;

// Raises where a saved tensor was freed or changed.
void check_saved_tensors(const Binding& binding, Node& node) {
  PackWriter writer(node, nullptr, UnpackHooks::kLeave);
  binding.pack(node, writer);
}

// The tensors among the saved values, in order; undefined ones too.
variable_list saved_tensors(const Binding& binding, Node& node, UnpackHooks unpack_hooks) {
  PackWriter writer(node, nullptr, unpack_hooks);
  binding.pack(node, writer);
  const auto packed = writer.take();
  variable_list tensors;
  for (size_t i = 0; i < binding.arguments.size(); ++i) {
    const c10::IValue& value = packed[i + 1];
    if (binding.arguments[i].kind.element != ElementKind::kTensor || value.isNone()) continue;
    if (!value.isList()) {
      tensors.push_back(value.toTensor());
      continue;
    }
    const auto list = value.toList();
    for (size_t j = 0; j < list.size(); ++j) {
      const c10::IValue item = list.get(j);
      tensors.push_back(item.isNone() ? at::Tensor() : item.toTensor());
    }
  }
  return tensors;
}

// Surrounds foreign code that a step runs.
class ForeignCode {
 public:
  ForeignCode(const LiveStep& step, GraphRun::Phase phase, bool is_last_of_phase)
      : step_(step), phase_(phase), is_last_of_phase_(is_last_of_phase), current_node_(*step.node) {
    TORCH_CHECK(
        step.run == nullptr || step.run->is_running(),
        "this node belongs to a backward that has ended: the lists that a graph is called with may not be kept");
  }

  // To be called where it has raised nothing.
  void end() {
    if (step_.run != nullptr) step_.run->after_foreign_code(step_.position, phase_, is_last_of_phase_);
  }

 private:
  const LiveStep& step_;
  const GraphRun::Phase phase_;
  const bool is_last_of_phase_;
  const torch_private::CurrentNodeGuard current_node_;
};

variable_list call_hooks_of_kind(Node& node, HookKind kind, variable_list gradients) {
  switch (kind) {
    case HookKind::kTensorPre:
      return call_tensor_pre_hooks(node, std::move(gradients));
    case HookKind::kRetainsGrad:
      return call_retains_grad_hooks(node, std::move(gradients));
    case HookKind::kPre:
      return call_pre_hooks(node, std::move(gradients));
    default:
      TORCH_INTERNAL_ASSERT(false, "these hooks are called behind the node");
  }
}

// Whether nothing foreign is called between a kind of hook and the call of the node.
bool is_last_before_call(const LiveStep& step, HookKind kind) {
  if (step.run == nullptr) return true;
  const StepCode& code = step.run->code_of(step.position);
  if (code.unpack_count > 0) return false;
  for (const HookKind later : {HookKind::kRetainsGrad, HookKind::kPre}) {
    if (later > kind && code.hooks.has(later)) return false;
  }
  return true;
}

// Whether hooks of this kind are called before the node, and were not there when the run began.
bool is_added_before_call(const LiveStep& step, HookKind kind) {
  if (step.run == nullptr) return false;
  const HookSet hooks(*step.node, step.run->runs(step.position));
  return hooks.has(kind) && !step.run->code_of(step.position).hooks.has(kind);
}

}  // namespace

GraphRun::GraphRun(const Plan& plan, const LiveNodes& nodes, const Request& request, const std::vector<StepCode>& code,
                   bool follows_changes, const ResumableExecutable& native, RunReport& report)
    : plan_(plan),
      nodes_(nodes),
      request_(request),
      code_(code),
      follows_changes_(follows_changes),
      native_(native),
      report_(report) {}

void GraphRun::begin() {
  // What is compiled cannot tell how far it has come.
  if (!follows_changes_) release_before(foreign_from(0));
}

void GraphRun::after_foreign_code(size_t step, Phase phase, bool is_last_of_phase) {
  has_run_foreign_code_ = true;
  if (!follows_changes_) restore_modes();
  if (!is_last_of_phase) return;
  const StepCode& code = code_[step];
  const bool calls_node = code.is_opaque || code.hooks.has(HookKind::kPostAccumulateGrad);
  const bool has_post_hooks = code.hooks.has(HookKind::kPost);
  if (phase == Phase::kBeforeCall && (calls_node || has_post_hooks)) {
    check(step, step + 1);
  } else if (phase == Phase::kBeforeCall) {
    go_on(step, foreign_from(step + 1));
  } else if (phase == Phase::kBehindCall || !has_post_hooks) {
    // The step itself is over.
    if (!follows_changes_) release_before(step + 1);
    go_on(step + 1, foreign_from(step + 1));
  }
}

void GraphRun::go_on(size_t first, size_t end) {
  // The step that runs foreign code next must still do what it was to do.
  check(first, std::min(end + 1, plan_.steps.size()));
  if (!follows_changes_) release_before(end);
}

void GraphRun::check(size_t first, size_t end) {
  must_be_left_ = has_changed(first, end);
  TORCH_CHECK(
      !must_be_left_ || follows_changes_,
      "a hook or function has changed hooks or saved tensors of nodes that this backward had not yet reached, or "
      "switched anomaly mode on; its compiled graph does not know of that: run such a backward with "
      "backbind.capture(backend=\"native\") or \"graph\", which see what hooks do");
}

void GraphRun::release_before(size_t end) {
  for (; next_ < end; ++next_) release(next_);
}

bool GraphRun::end_step(size_t step) {
  release(step);
  restore_modes();
  if (step == 0) torch_private::release_dependencies(request_.task);
  return must_be_left_;
}

void GraphRun::restore_modes() const {
  if (ThreadModes() != modes_) at::ThreadLocalState::setThreadLocalState(request_.task.thread_locals_);
}

size_t GraphRun::foreign_from(size_t step) const {
  while (step < code_.size() && !code_[step].is_foreign()) ++step;
  return step;
}

bool GraphRun::has_changed(size_t first, size_t end) const {
  if (!has_run_foreign_code_) return false;
  if (torch::autograd::AnomalyMode::is_enabled()) return true;
  for (size_t step = first; step < end; ++step) {
    if (!is_as_lifted(step)) return true;
  }
  return false;
}

void GraphRun::end() {
  if (must_be_left_) return;  // the native backend has run the rest
  for (size_t step = 0; step < code_.size() && !follows_changes_; ++step) {
    const HookSet hooks(*nodes_[step], plan_.steps[step].runs);
    TORCH_CHECK((hooks.bits() & ~code_[step].hooks.bits()) == 0, "during this backward a hook was added to ",
                nodes_[step]->name(),
                ", which its compiled graph did not call: run such a backward with "
                "backbind.capture(backend=\"native\") or \"graph\", which see what hooks do");
  }
  if (!follows_changes_) release_before(plan_.steps.size());
}

bool GraphRun::is_as_lifted(size_t step) const {
  const Step& planned = plan_.steps[step];
  if (HookSet(*nodes_[step], planned.runs) != code_[step].hooks) return false;
  if (planned.is_accumulate_grad && planned.runs) {
    const at::Tensor& variable = static_cast<torch::autograd::AccumulateGrad&>(*nodes_[step]).variable;
    return is_leaf_of(variable, *nodes_[step]) &&
           nodes_[step]->input_metadata(0).grad_dtype() == code_[step].leaf_grad_dtype;
  }
  if (!has_operator(planned)) return true;
  try {
    check_saved_tensors(*planned.binding, *nodes_[step]);
  } catch (const std::exception&) {
    return false;  // the native backend will raise it when the step's turn comes
  }
  return true;
}

void GraphRun::release(size_t step) {
  if (plan_.steps[step].runs && !request_.task.keep_graph_) nodes_[step]->release_variables();
}

variable_list GraphRun::resume(Progress progress) {
  TORCH_CHECK(is_running_, "this backward has ended");
  report_.native_run = NativeRunReason::kChangedAhead;
  return native_.resume(nodes_, request_, report_, std::move(progress));
}

variable_list call_hooks(const LiveStep& step, HookKind kind, variable_list gradients) {
  ForeignCode code(step, GraphRun::Phase::kBeforeCall, is_last_before_call(step, kind));
  gradients = call_hooks_of_kind(*step.node, kind, std::move(gradients));
  // A hook may have added others of a later kind to its own node.
  for (const HookKind later : {HookKind::kRetainsGrad, HookKind::kPre}) {
    if (later > kind && is_added_before_call(step, later))
      gradients = call_hooks_of_kind(*step.node, later, std::move(gradients));
  }
  code.end();
  return gradients;
}

variable_list call_post_hooks(const LiveStep& step, variable_list results, const variable_list& gradients) {
  ForeignCode code(step, GraphRun::Phase::kBehindCall, true);
  results = call_post_hooks(*step.node, std::move(results), gradients);
  code.end();
  return results;
}

variable_list call_node(const LiveStep& step, variable_list gradients) {
  ForeignCode code(step, GraphRun::Phase::kCall, true);
  if (step.run != nullptr && !step.run->keeps_graph()) step.node->will_release_variables();
  variable_list results = (*step.node)(std::move(gradients));
  validate_grads(*step.node, results);
  code.end();
  return results;
}

variable_list unpack(const LiveStep& step) {
  ForeignCode code(step, GraphRun::Phase::kBeforeCall, true);
  const variable_list packed = saved_tensors(*step.binding, *step.node, UnpackHooks::kLeave);
  const variable_list all = saved_tensors(*step.binding, *step.node, UnpackHooks::kCall);
  variable_list unpacked;
  for (size_t i = 0; i < packed.size(); ++i) {
    if (packed[i].is_same(PackWriter::unpacked_later())) unpacked.push_back(all[i]);
  }
  code.end();
  return unpacked;
}

void accumulate_with_hooks(const LiveStep& step, variable_list gradients) {
  ForeignCode code(step, GraphRun::Phase::kCall, true);
  (*step.node)(std::move(gradients));
  code.end();
}

}  // namespace backbind
