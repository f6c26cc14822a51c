#include "replay/replay.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "hooks/run.h"
#include "replay/accumulate.h"
#include "replay/fit.h"
#include "replay/slots.h"
#include "thread_modes.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::Node;

namespace {

// Whether no graph is built, nothing in this thread wants to see what is computed, and the caller has not left out
// autograd's keys already, so that leaving them out is for us to do. Whatever changes that during a backward is foreign
// code, behind which it is undone.
bool nobody_watches() {
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  return !at::GradMode::is_enabled() && !someone_watches() && (excluded - c10::default_excluded_set).empty() &&
         torch::autograd::ForwardADLevel::try_get_by_idx(0) == nullptr;
}

class Replay {
 public:
  Replay(const Plan& plan, const LiveNodes& nodes, const Request& request, SlowPathSteps& slow_path)
      : plan_(plan),
        nodes_(nodes),
        request_(request),
        slow_path_(slow_path),
        slots_(plan.slot_count),
        results_(plan.gradients.size()),
        workspace_(plan.most_targets) {}

  variable_list run() {
    {
      // What the engine sets for each node, above all the grad mode: create_graph decides that, not the caller.
      const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
      modes_ = ThreadModes();
      is_simple_ = nobody_watches();
      if (is_simple_) find_foreign_kernels();
      enter_roots();
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        run_step(plan_.steps[i], *nodes_[i]);
        if (i == 0) torch_private::forget_dependencies(request_.task);
      }
    }
    run_final_callbacks();
    return std::move(results_);
  }

 private:
  void enter_roots() {
    Node& root = *request_.root;
    if (torch_private::begins_at_root(root)) return send_to_roots(torch_private::root_gradients(root));
    const torch_private::CurrentNodeGuard current_node(root);
    send_to_roots(evaluate(root, [&] { return root(variable_list()); }));
  }

  void send_to_roots(variable_list&& gradients) {
    for (size_t i = 0; i < plan_.roots.size(); ++i)
      send(plan_.roots[i], std::move(gradients[i]), !is_simple_ || foreign_sum_ != nullptr);
    // The engine begins a backward from one root at that root, whose hooks it calls even if nobody asks for anything
    // behind it.
    const auto& roots = request_.roots();
    if (roots.size() == 1 && plan_.roots[0].step == Target::kUnwanted) call_hooks_of_unwanted_root(roots[0]);
  }

  void call_hooks_of_unwanted_root(const torch::autograd::Edge& root) {
    variable_list gradients(root.function->num_inputs());
    gradients[root.input_nr] = std::move(torch_private::root_gradients(*request_.root)[0]);
    const torch_private::CurrentNodeGuard current_node(*root.function);
    run_tensor_hooks(*root.function, std::move(gradients));
    undo_modes_left_behind();
  }

  void send(const Target& target, at::Tensor&& gradient, bool is_watched) {
    if (target.is_followed()) slots_.add(plan_.slot_of(target), std::move(gradient), nodes_[target.step], is_watched);
  }

  void run_step(const Step& step, Node& node) {
    evaluate(node, [&] { run_guarded(step, node); });
  }

  // Runs `body` inside the event that a profiler sees around a node, if there is one that looks.
  template <class Body>
  static auto evaluate(const Node& node, Body body) -> decltype(body()) {
    if (!at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value()) [[likely]]
      return body();
    RECORD_FUNCTION("autograd::engine::evaluate_function: " + node.name(), c10::ArrayRef<const c10::IValue>());
    return body();
  }

  void run_guarded(const Step& step, Node& node) {
    try {
      const WatchedOperator* foreign = foreign_operator_of(step);
      const std::optional<SlowPathReason> reason = run_directly(step, node, foreign);
      if (!reason.has_value()) return;
      if (*reason == SlowPathReason::kForeignKernel) [[unlikely]] {
        slow_path_.add_foreign_kernel(step.node_type, foreign->name());
      } else {
        slow_path_.add(step.node_type, *reason);
      }
      const torch_private::CurrentNodeGuard current_node(node);
      run_live(step, node);
      undo_modes_left_behind();
    } catch (std::exception& error) {
      // The engine keeps a Python exception safe until the thread that asked for the backward raises it.
      torch::autograd::Engine::get_default_engine().thread_on_exception(request_.task.shared_from_this(), node.getptr(),
                                                                        error);
      throw;
    }
  }

  // Hooks, functions and tensor subclasses may leave a mode of the thread behind. What their own step still does feels
  // it, as in the engine; the next node does not.
  void undo_modes_left_behind() {
    if (ThreadModes() != modes_) [[unlikely]]
      at::ThreadLocalState::setThreadLocalState(request_.task.thread_locals_);
  }

  void run_live(const Step& step, Node& node) {
    variable_list results;
    {
      // Gone before the results are sent on: a sum may reuse the memory of a gradient that nobody else holds.
      variable_list gradients = slots_.take(step);
      if (step.handed_out_count > 0) hand_out(step, node, gradients);
      if (!step.runs) return;
      results = call(node, std::move(gradients));
    }
    finish(step, node, results, /*is_watched=*/true);
  }

  void finish(const Step& step, Node& node, std::span<at::Tensor> results, bool is_watched) {
    if (!request_.task.keep_graph_) node.release_variables();
    // Anomaly mode is the engine's business, but a hook may have switched it on meanwhile.
    if (torch::autograd::AnomalyMode::is_enabled() && torch::autograd::AnomalyMode::should_check_nan()) [[unlikely]] {
      refuse_nan(node, results);
    }
    const auto targets = plan_.targets_of(step);
    for (size_t i = 0; i < targets.size(); ++i) send(targets[i], std::move(results[i]), is_watched);
  }

  static void refuse_nan(Node& node, std::span<at::Tensor> results) {
    const at::AutoGradMode without_graph(false);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined() || !at::isnan(results[i])._is_any_true().item<bool>()) continue;
      throw std::runtime_error("Function '" + node.name() + "' returned nan values in its " + std::to_string(i) +
                               "th output.");
    }
  }

  // Runs a step without the node's own call, if that makes no difference; otherwise does nothing and says why not.
  std::optional<SlowPathReason> run_directly(const Step& step, Node& node, const WatchedOperator* foreign) {
    if (!is_simple_) return SlowPathReason::kWatched;
    if (is_hooked(node) || (step.accumulates && node.tensor_post_acc_grad_hooks() != nullptr))
      return SlowPathReason::kHooks;
    if (step.handed_out_count > 0) return SlowPathReason::kHandedOut;
    if (foreign != nullptr) return SlowPathReason::kForeignKernel;
    if (step.accumulates) {
      if (!accumulate(node, slots_.of(step)[0])) return SlowPathReason::kAccumulation;
      return std::nullopt;
    }
    if (step.binding == nullptr) return SlowPathReason::kOpaque;
    if (!step.has_formulas) return why_without_formulas(*step.binding);
    if (!run_by_formulas(step, node)) return SlowPathReason::kTensors;
    return std::nullopt;
  }

  static SlowPathReason why_without_formulas(const Binding& binding) {
    if (!binding.is_inline) return SlowPathReason::kNoFormulas;
    return binding.step == nullptr ? SlowPathReason::kTensorLists : SlowPathReason::kEdges;
  }

  // Operators that steps of this plan call, with kernels beside torch's own for what is left out. It is looked at once
  // for each backward; to register one while it runs is a race that the program has with itself.
  void find_foreign_kernels() {
    for (WatchedOperator* one : plan_.operators) {
      if (one->has_kernels_of_torch()) [[likely]]
        continue;
      foreign_.push_back(one);
      if (std::ranges::find(kSumOperators, one->name()) != kSumOperators.end()) foreign_sum_ = one;
    }
  }

  // Null, if the step calls none. Sums belong to every step.
  const WatchedOperator* foreign_operator_of(const Step& step) const {
    if (foreign_.empty()) [[likely]]
      return nullptr;
    if (foreign_sum_ != nullptr || step.binding == nullptr) return foreign_sum_;
    const auto is_called = [&](const WatchedOperator* one) {
      return std::ranges::find(step.binding->step_operators, one->name()) != step.binding->step_operators.end();
    };
    const auto found = std::ranges::find_if(foreign_, is_called);
    return found == foreign_.end() ? nullptr : *found;
  }

  // Returns whether it could be done.
  bool run_by_formulas(const Step& step, Node& node) {
    const auto gradients = slots_.of(step);
    if (!std::all_of(gradients.begin(), gradients.end(), is_ordinary)) return false;
    const std::span<at::Tensor> results(workspace_.data(), step.target_count);
    if (!step.binding->step(node, {gradients, plan_.wanted_of(step), results})) return false;
    for (at::Tensor& gradient : gradients) gradient.reset();
    fit_gradients_unwatched(node, results);
    finish(step, node, results, /*is_watched=*/false);
    for (at::Tensor& result : results) result.reset();
    return true;
  }

  // A node that does not run has its tensor hooks called for the sake of those who get its gradients.
  void hand_out(const Step& step, Node& node, variable_list& gradients) {
    if (!step.runs) gradients = run_tensor_hooks(node, std::move(gradients));
    for (const HandedOut& one : plan_.handed_out_by(step)) results_[one.output] = gradients[one.input];
  }

  variable_list call(Node& node, variable_list&& gradients) {
    if (is_hooked(node)) [[unlikely]]
      return call_with_hooks(node, std::move(gradients));
    return call_alone(node, std::move(gradients));
  }

  variable_list call_alone(Node& node, variable_list&& gradients) {
    if (!request_.task.keep_graph_) node.will_release_variables();
    variable_list results = node(std::move(gradients));
    fit_gradients(node, results);
    return results;
  }

  variable_list call_with_hooks(Node& node, variable_list&& gradients) {
    gradients = run_tensor_hooks(node, std::move(gradients));
    gradients = run_node_pre_hooks(node, std::move(gradients));
    if (node.post_hooks().empty()) return call_alone(node, std::move(gradients));
    variable_list copies = gradients;
    variable_list results = call_alone(node, std::move(copies));
    return run_node_post_hooks(node, std::move(results), gradients);
  }

  void run_final_callbacks() {
    auto& task = request_.task;
    std::unique_lock lock(task.final_callbacks_lock_);
    if (task.final_callbacks_.empty()) return;
    const at::ThreadLocalStateGuard state(task.thread_locals_);
    // By index, because a callback may queue another.
    for (size_t i = 0; i < task.final_callbacks_.size(); ++i) {
      const auto callback = task.final_callbacks_[i];
      lock.unlock();
      callback();
      lock.lock();
    }
  }

  const Plan& plan_;
  const LiveNodes& nodes_;
  const Request& request_;
  SlowPathSteps& slow_path_;
  Slots slots_;
  variable_list results_;
  // Where formulas put their results before they are sent on.
  std::vector<at::Tensor> workspace_;
  ThreadModes modes_;
  // Whether formulas may run below the autograd keys.
  bool is_simple_ = false;
  // Operators that the program has kernels of its own for, and one of those that sum gradients.
  std::vector<const WatchedOperator*> foreign_;
  const WatchedOperator* foreign_sum_ = nullptr;
};

}  // namespace

variable_list replay(const Plan& plan, const LiveNodes& nodes, const Request& request, SlowPathSteps& slow_path) {
  return Replay(plan, nodes, request, slow_path).run();
}

}  // namespace backbind
